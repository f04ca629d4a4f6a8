#pragma once

#include <string>
#include <string_view>

// Passwords in URLs, which nobody else is to see.
namespace holdfast::command {

// A URL for people, its password hidden.
std::string redacted(std::string_view url);

// Overwrites the passwords in the program's own words, which everybody on this
// machine can read in the list of processes.
void hide_passwords(int argc, char** argv);

}  // namespace holdfast::command
