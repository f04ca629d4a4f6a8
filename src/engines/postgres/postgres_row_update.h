#pragma once

#include <holdfast/error.h>
#include <holdfast/own_row.h>

namespace holdfast::engines::postgres {

// On the user's own PGconn. True: the row was changed; false: it has another
// version, or is not there.
Result<bool> update_row(void* connection, const RowUpdate& update);

}  // namespace holdfast::engines::postgres
