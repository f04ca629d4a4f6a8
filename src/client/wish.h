#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <holdfast/options.h>
#include <string>
#include <string_view>

#include "client/coordinator.h"

namespace holdfast::client {

// Whatever is longer counts as for ever: no clock can be added to it.
inline constexpr Duration kLongestWait = std::chrono::hours{24 * 365 * 100};

// invalid_argument unless 1 to 255 bytes.
Result<void> check_name(std::string_view name);

// That the engine lacks something, and who has it: if it can be had by another
// strategy on the same store, that one first.
Error unsupported(const std::string& what, const Capabilities& engine,
                  bool (*has)(const Capabilities&));

// Turns a caller's options into a Wish, or says what is wrong with them:
// invalid_argument names the field, unsupported an engine that can.
Result<Wish> make_wish(std::string_view name, const AcquireOptions& options,
                       const Capabilities& engine);

}  // namespace holdfast::client
