#pragma once

#include <holdfast/error.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace holdfast::command {

// Starts this very program once more, with `memory` as its standard input and
// its output on our standard error. Variables that are set here replace those
// of the same name: what should not stand in the process list goes this way.
Result<pid_t> start_self(std::vector<std::string> words, int memory,
                         const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace holdfast::command
