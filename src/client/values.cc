#include "client/values.h"

#include <holdfast/versioned.h>
#include <string>
#include <utility>

#include "base/jitter.h"
#include "client/wish.h"

namespace holdfast::client {
namespace {

using namespace std::chrono_literals;

Result<void> check_write(const core::ValueWrite& write) {
  if (write.expected && *write.expected == 0) {
    return fail(ErrorCode::invalid_argument,
                "expected is 0, which is no version; create() makes a value that is not there");
  }
  if (write.bytes && write.bytes->size() > kMaxValueBytes) {
    return fail(ErrorCode::invalid_argument,
                "the value has " + std::to_string(write.bytes->size()) + " bytes; at most " +
                    std::to_string(kMaxValueBytes) + " are allowed");
  }
  return {};
}

// Somebody else's write followed directly on what we expected, so there was no
// room for ours.
bool cannot_have_been_applied(const core::ValueWrite& write, std::uint64_t current) {
  return write.expected && current == *write.expected + 1;
}

tl::unexpected<Error> unknown(const Error* last) {
  return fail(
      ErrorCode::outcome_unknown,
      "the value may or may not have been written: the answer got lost" +
          (last != nullptr ? ", and then: " + last->text : std::string{", and others wrote since"}),
      last != nullptr ? last->native : std::nullopt);
}

}  // namespace

Result<void> check_value_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return fail(ErrorCode::invalid_argument,
                "the value's name has " + std::to_string(name.size()) + " bytes; give it 1 to 255");
  }
  if (name.starts_with(kReservedNames)) {
    return fail(ErrorCode::invalid_argument, "the value's name begins with \"" +
                                                 std::string{kReservedNames} +
                                                 "\", which is reserved; choose another");
  }
  return {};
}

Result<std::optional<core::Value>> read_value(Service& service, std::string_view name) {
  return service.engine()
      .and_then([&](engine::Engine* engine) { return engine->load_value(name); })
      .map([](std::optional<core::Value> found) {
        return found && found->bytes ? std::move(found) : std::nullopt;
      });
}

Result<core::ValueOutcome> write_value(Service& service, core::ValueWrite write) {
  const auto engine = service.engine();
  if (!engine) {
    return tl::unexpected{engine.error()};
  }
  if (auto good = check_write(write); !good) {
    return tl::unexpected{std::move(good.error())};
  }
  write.writer = base::Id::random();
  const base::Time give_up = base::BootClock::now() + kPatience;
  bool in_doubt = false;
  while (true) {
    auto outcome = (*engine)->write_value(write);
    if (outcome) {
      const bool clear =
          outcome->applied || !in_doubt || cannot_have_been_applied(write, outcome->version);
      return clear ? std::move(outcome) : unknown(nullptr);
    }
    in_doubt = in_doubt || outcome.error().code == ErrorCode::outcome_unknown;
    if (!in_doubt) {
      return outcome;
    }
    if (base::BootClock::now() >= give_up) {
      return unknown(&outcome.error());
    }
    base::sleep_for(base::random_between(10ms, 100ms));
  }
}

}  // namespace holdfast::client
