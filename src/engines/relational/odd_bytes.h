#pragma once

#include <string>
#include <string_view>

namespace holdfast::engines::relational {

// Any bytes as printable ASCII, which every encoding and collation of every
// database keeps apart: what is printable stays as it is, the rest and '%'
// become %XX. Two different inputs never look the same, and a prefix stays a
// prefix.
std::string escaped(std::string_view bytes);

// What escaped() was given; other text is returned as it is.
std::string unescaped(std::string_view text);

}  // namespace holdfast::engines::relational
