#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <holdfast/task.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The --json forms; docs/cli.md lists the fields, which stay as they are. One
// line each, without a line end.
namespace holdfast::command {

struct Change;

std::string json(const LockInfo& lock);
std::string json(const std::vector<LockInfo>& locks);
std::string json(const std::vector<TaskRecord>& tasks);
std::string json(const Change& change);
std::string json(const std::vector<Finding>& findings, const std::string& store);
std::string json(const Error& error, int exit_status);

// A flat object of texts and numbers.
struct Field {
  std::string_view key;
  std::string text;
};
std::string json_object(const std::vector<Field>& texts,
                        const std::vector<std::pair<std::string_view, std::int64_t>>& numbers = {});

std::string_view to_string(Finding::Level level) noexcept;

}  // namespace holdfast::command
