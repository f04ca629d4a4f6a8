#include "engines/mysql/mysql_features.h"

#include <charconv>
#include <utility>

namespace holdfast::engines {
namespace {

// 10 and 11 of 10.11.19-MariaDB.
std::pair<int, int> numbers_of(std::string_view version) {
  std::pair<int, int> numbers{0, 0};
  const char* const end = version.data() + version.size();
  const char* const dot = std::from_chars(version.data(), end, numbers.first).ptr;
  if (dot != end && *dot == '.') {
    std::from_chars(dot + 1, end, numbers.second);
  }
  return numbers;
}

}  // namespace

MysqlFeatures MysqlFeatures::of(std::string_view version) {
  const std::pair<int, int> numbers = numbers_of(version);
  if (version.find("MariaDB") != std::string_view::npos) {
    return {.mariadb = true,
            .returning = numbers >= std::pair{10, 5},
            .nowait = numbers >= std::pair{10, 3},
            .skip_locked = numbers >= std::pair{10, 6}};
  }
  const bool modern = numbers.first >= 8;
  return {.mariadb = false, .returning = false, .nowait = modern, .skip_locked = modern};
}

}  // namespace holdfast::engines
