#pragma once

#include <holdfast/error.h>
#include <string>

#include "client/service.h"

namespace holdfast::client {

// Random, kept in the store since it was first asked for (or since init()): the
// same by whatever URL one came there. unsupported: the engine keeps no values.
Result<std::string> store_id(Service& service);

}  // namespace holdfast::client
