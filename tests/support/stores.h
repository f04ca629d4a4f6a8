#pragma once

#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace holdfast::test {

// An empty store of that engine, for tests that talk to engines without a
// client. Files go into `dir`; a server is the shared one.
std::string store_url(const std::string& engine, const TempDir& dir);

// The engines that answer command by command like core/lock_record.
std::vector<std::string> engines_of_the_record();

}  // namespace holdfast::test
