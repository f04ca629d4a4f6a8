#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::command {

enum class Colour : unsigned char { none, bold, dim, red, green, yellow, cyan };

// Colour for standard output: only on a terminal, and not if NO_COLOR is set.
class Paint {
 public:
  Paint();  // looks at standard output and the environment
  explicit Paint(bool on) : on_{on} {}
  std::string operator()(Colour colour, std::string_view text) const;

 private:
  bool on_;
};

// Aligned columns, two spaces apart, no tabs, nothing after the last column:
// the same text for an eye and for awk.
class Table {
 public:
  struct Cell {
    std::string text;  // printable() is up to the caller
    Colour colour = Colour::none;
  };

  explicit Table(std::vector<std::string> header) : header_{std::move(header)} {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  void print(std::ostream& out, const Paint& paint) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace holdfast::command
