#pragma once

#include <string>

#include "support/temp_dir.h"

namespace holdfast::test {

// An empty store of that engine, for tests that talk to engines without a
// client. Files go into `dir`; a server is the shared one.
std::string store_url(const std::string& engine, const TempDir& dir);

}  // namespace holdfast::test
