#include "client/task_record.h"

#include <algorithm>
#include <charconv>

namespace holdfast::client {
namespace {

constexpr std::size_t kLongestMessage = 1000;
constexpr std::size_t kLongestHost = 255;

// One line, and words where there must be one word.
std::string tame(std::string_view text, std::size_t at_most, bool one_word) {
  std::string tamed{text.substr(0, at_most)};
  std::replace_if(
      tamed.begin(), tamed.end(),
      [&](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte == 0x7f || (one_word && c == ' ');
      },
      one_word ? '_' : ' ');
  return one_word && tamed.empty() ? "-" : tamed;
}

std::string_view next(std::string_view& text, char end) {
  const auto at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

template <typename Number>
bool read(std::string_view word, Number& number) {
  const char* end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, number);
  return error == std::errc{} && at == end;
}

std::optional<StoredRun> run_in(std::string_view line) {
  StoredRun run;
  const std::string_view status = next(line, ' ');
  if (status != "P" && status != "S" && status != "F" && status != "L") {
    return std::nullopt;
  }
  run.status = static_cast<TaskStatus>(status.front());
  if (!read(next(line, ' '), run.begin) || !read(next(line, ' '), run.end) ||
      !read(next(line, ' '), run.pid)) {
    return std::nullopt;
  }
  run.host = next(line, ' ');
  run.message = line;
  return run;
}

}  // namespace

std::string line_of(const StoredRun& run) {
  return std::string(1, static_cast<char>(run.status)) + " " + std::to_string(run.begin) + " " +
         std::to_string(run.end) + " " + std::to_string(run.pid) + " " +
         tame(run.host, kLongestHost, true) + " " + tame(run.message, kLongestMessage, false);
}

std::string StoredTask::text() const {
  return line_of(last) + "\n" + (previous ? line_of(*previous) + "\n" : "");
}

std::optional<StoredTask> StoredTask::parse(std::string_view text) {
  const auto last = run_in(next(text, '\n'));
  if (!last) {
    return std::nullopt;
  }
  return StoredTask{.last = *last, .previous = run_in(next(text, '\n'))};
}

StoredTask StoredTask::completed(core::Micros written) const {
  StoredTask task = *this;
  if (task.last.begin == 0) {
    task.last.begin = written;
  }
  if (task.last.end == 0 && task.last.status != TaskStatus::running) {
    task.last.end = written;
  }
  return task;
}

}  // namespace holdfast::client
