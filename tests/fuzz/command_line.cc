// sources: all
#include "holdfast/command_line.h"

#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "holdfast/commands.h"

namespace command = holdfast::command;

// The words of a command line, one a line. Parsing does nothing yet.
FUZZ_TARGET(command_line) {
  std::vector<std::string> words{"holdfast"};
  std::string word;
  for (const char c : std::string{input} + "\n") {
    if (c == '\n') {
      words.push_back(std::exchange(word, {}));
    } else if (c != '\0') {
      word += c;
    }
  }
  std::vector<char*> pointers;
  for (std::string& text : words) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  command::Context context;
  command::CommandLine line{context};
  command::register_run(line, context);
  command::register_ls(line, context);
  command::register_release(line, context);
  command::register_watch(line, context);
  command::register_bench(line, context);
  command::register_torture(line, context);
  const auto action = line.parse(static_cast<int>(words.size()), pointers.data());
  REQUIRE(action || !action.error().text.empty());
}
