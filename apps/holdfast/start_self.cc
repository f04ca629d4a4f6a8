#include "start_self.h"

#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <system_error>

namespace holdfast::command {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Result<pid_t> start_self(std::vector<std::string> words, int memory,
                         const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) {
    environment.push_back(name + "=" + value);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const bool replaced = std::ranges::any_of(
        variables, [&](const auto& variable) { return text.starts_with(variable.first + "="); });
    if (!replaced) {
      environment.emplace_back(text);
    }
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, memory, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = -1;
  const int failure = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr,
                                  pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    return fail(ErrorCode::unavailable,
                "cannot start a process: " + std::generic_category().message(failure), failure);
  }
  return pid;
}

}  // namespace holdfast::command
