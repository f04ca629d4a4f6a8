#include <iostream>

#include "commands.h"
#include "exit_status.h"
#include "json.h"

namespace holdfast::command {

void register_version(CommandLine& line, const Context& context) {
  const auto print = [&context] {
    if (context.json) {
      std::cout << json_object({{"version", HOLDFAST_VERSION}}) << '\n';
    } else {
      std::cout << "holdfast " << HOLDFAST_VERSION << '\n';
    }
    return kSuccess;
  };
  line.add("version", "Show the version", "holdfast version [--json]").action(print);
  line.version = print;
}

}  // namespace holdfast::command
