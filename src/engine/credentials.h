#pragma once

#include <holdfast/error.h>
#include <string>

#include "engine/query.h"
#include "engine/url.h"

namespace holdfast::engine {

// The password that belongs to the URL: its own, else that of the file that
// the option `password_file` names (its first line; nobody else may read the
// file), else the environment's HOLDFAST_PASSWORD, else none.
Result<std::string> password_for(const Url& url, Query& query);

// Whether the host is this machine, so that nobody can listen in between. By
// its spelling alone: "localhost", 127.0.0.0/8, ::1.
bool is_loopback(std::string_view host);

}  // namespace holdfast::engine
