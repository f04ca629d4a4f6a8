#pragma once

#include <string>

namespace holdfast::base {

// For people only: what this process and its machine are called.
std::string program_name();
std::string host_name();

}  // namespace holdfast::base
