#pragma once

#include <holdfast/error.h>
#include <string>
#include <string_view>

#include "core/commands.h"

namespace holdfast::client {

// What one process tells another that is to take over its grant. Knowing the
// request is the right to it. Letters, digits and dashes: fit for a command
// line or an environment variable.
struct HandOverCode {
  std::string name;
  core::RequestId request;
  core::Shape shape;

  std::string text() const;
  // invalid_argument
  static Result<HandOverCode> read(std::string_view text);
};

}  // namespace holdfast::client
