#include "table.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "text.h"

namespace holdfast::command {
namespace {

std::string_view code(Colour colour) {
  switch (colour) {
    case Colour::bold:
      return "\x1b[1m";
    case Colour::dim:
      return "\x1b[2m";
    case Colour::red:
      return "\x1b[31m";
    case Colour::green:
      return "\x1b[32m";
    case Colour::yellow:
      return "\x1b[33m";
    case Colour::cyan:
      return "\x1b[36m";
    case Colour::none:
      break;
  }
  return "";
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_colour == nullptr || *no_colour == '\0') && terminal != nullptr &&
         std::string_view{terminal} != "dumb" && isatty(STDOUT_FILENO) == 1;
}

}  // namespace

Paint::Paint() : on_{wants_colour()} {}

std::string Paint::operator()(Colour colour, std::string_view text) const {
  if (!on_ || colour == Colour::none) {
    return std::string{text};
  }
  return std::string{code(colour)} + std::string{text} + "\x1b[0m";
}

void Table::print(std::ostream& out, const Paint& paint) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < header_.size(); ++i) {
    std::size_t widest = width(header_[i]);
    for (const auto& row : rows_) {
      widest = std::max(widest, width(row.at(i).text));
    }
    widths.push_back(widest);
  }
  const auto print_row = [&](const std::vector<Cell>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out << paint(row[i].colour, row[i].text);
      if (i + 1 < row.size()) {
        out << std::string(widths[i] - width(row[i].text) + 2, ' ');
      }
    }
    out << '\n';
  };
  std::vector<Cell> top;
  for (const std::string& title : header_) {
    top.push_back({title, Colour::dim});
  }
  print_row(top);
  for (const auto& row : rows_) {
    print_row(row);
  }
}

}  // namespace holdfast::command
