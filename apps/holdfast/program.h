#pragma once

#include <holdfast/error.h>
#include <string>

namespace holdfast::command {

// Why a command cannot be run, and what shells exit with then: 126 or 127.
struct Refusal {
  int exit_status = 0;
  std::string text;
};

// The file that a shell would run for this word, so that a slip is found
// before anything is locked.
tl::expected<std::string, Refusal> find_program(const std::string& word);

// What exec said about it.
Refusal refusal_of(const std::string& word, int error_number);

}  // namespace holdfast::command
