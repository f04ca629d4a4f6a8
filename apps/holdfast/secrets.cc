#include "secrets.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "text.h"

namespace holdfast::command {
namespace {

struct Range {
  std::size_t begin;
  std::size_t end;
};

// user:PASSWORD@host
void find_in_authority(std::string_view url, std::vector<Range>& found) {
  const std::size_t start = url.find("://");
  if (start == std::string_view::npos) {
    return;
  }
  const std::size_t first = start + 3;
  const std::size_t at = url.substr(0, url.find_first_of("/?", first)).rfind('@');
  const std::size_t colon = url.find(':', first);
  if (at != std::string_view::npos && at > first && colon < at) {
    found.push_back({colon + 1, at});
  }
}

// Where a value of libpq's keywords ends: in quotes there may be spaces.
std::size_t end_of_value(std::string_view url, std::size_t begin) {
  if (begin >= url.size() || url[begin] != '\'') {
    return std::min(url.find_first_of(" &", begin), url.size());
  }
  std::size_t end = begin + 1;
  while (end < url.size() && url[end] != '\'') {
    end += url[end] == '\\' ? 2U : 1U;
  }
  return std::min(end + 1, url.size());
}

// ?password=PASSWORD, and `host=db password=PASSWORD`
void find_in_pairs(std::string_view url, std::vector<Range>& found) {
  static constexpr std::string_view kKey = "password=";
  for (std::size_t at = url.find(kKey); at != std::string_view::npos;) {
    const std::size_t begin = at + kKey.size();
    const std::size_t end = end_of_value(url, begin);
    found.push_back({begin, end});
    at = url.find(kKey, end);
  }
}

// In the order of the text; they do not overlap.
std::vector<Range> secrets_in(std::string_view url) {
  std::vector<Range> found;
  find_in_authority(url, found);
  const std::size_t rest = found.empty() ? 0 : found.front().end;
  std::vector<Range> pairs;
  find_in_pairs(url.substr(rest), pairs);
  for (const Range& each : pairs) {
    found.push_back({rest + each.begin, rest + each.end});
  }
  return found;
}

}  // namespace

std::string redacted(std::string_view url) {
  std::string text;
  std::size_t shown = 0;
  for (const Range& secret : secrets_in(url)) {
    text.append(url.substr(shown, secret.begin - shown)).append("***");
    shown = secret.end;
  }
  return printable(text.append(url.substr(shown)));
}

void hide_passwords(int argc, char** argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string_view word{argv[i]};
    for (const Range& secret : secrets_in(word)) {
      std::fill(argv[i] + secret.begin, argv[i] + secret.end, '*');
    }
  }
}

}  // namespace holdfast::command
