#pragma once

#include <holdfast/error.h>
#include <holdfast/own_row.h>

namespace holdfast::engines {

// On the user's own MYSQL connection. True: the row was changed; false: it has
// another version, or is not there.
Result<bool> update_row_on_mysql(void* connection, const RowUpdate& update);

}  // namespace holdfast::engines
