#include <holdfast/versioned.h>

#include <algorithm>
#include <utility>

#include "base/jitter.h"
#include "client/values.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstPause = 1ms;
constexpr Duration kLongestPause = 64ms;

// Longer from time to time, and never the same: those who collided once would
// meet again.
Duration pause(std::uint32_t conflicts) {
  const Duration most = kFirstPause * (1U << std::min(conflicts, 6U));
  return base::random_between(Duration::zero(), std::min(most, kLongestPause));
}

Result<WriteOutcome> write(client::Service& service, const core::ValueWrite& wanted) {
  return client::check_value_name(wanted.name)
      .and_then([&] { return client::write_value(service, wanted); })
      .map([](const core::ValueOutcome& done) {
        return WriteOutcome{.stored = done.applied, .version = done.version};
      });
}

}  // namespace

Versioned::Versioned(std::shared_ptr<client::Service> service, std::string name)
    : service_{std::move(service)}, name_{std::move(name)} {}

Result<std::optional<VersionedValue>> Versioned::read() const {
  auto found = client::check_value_name(name_).and_then(
      [&] { return client::read_value(*service_, name_); });
  if (!found) {
    return tl::unexpected{std::move(found.error())};
  }
  std::optional<VersionedValue> value;
  if (*found) {
    value.emplace();
    value->value = *std::move((*found)->bytes);
    value->version = (*found)->version;
    value->written = client::calendar((*found)->written);
  }
  return value;
}

Result<WriteOutcome> Versioned::create(std::string_view value) const {
  return write(*service_, {.name = name_, .expected = std::nullopt, .bytes = value, .writer = {}});
}

Result<WriteOutcome> Versioned::compare_and_set(std::string_view value,
                                                std::uint64_t expected) const {
  return write(*service_, {.name = name_, .expected = expected, .bytes = value, .writer = {}});
}

Result<WriteOutcome> Versioned::erase(std::uint64_t expected) const {
  return write(*service_,
               {.name = name_, .expected = expected, .bytes = std::nullopt, .writer = {}});
}

Result<UpdateOutcome> Versioned::update(const Change& change, const UpdateOptions& options) const {
  if (!change) {
    return fail(ErrorCode::invalid_argument, "change is an empty function");
  }
  UpdateOutcome outcome;
  while (true) {
    if (options.stop.stop_requested()) {
      return fail(ErrorCode::cancelled, "the update was cancelled; nothing was changed");
    }
    auto found = read();
    if (!found) {
      return tl::unexpected{std::move(found.error())};
    }
    outcome.version = *found ? (*found)->version : 0;
    outcome.value = *found ? std::optional{std::move((*found)->value)} : std::nullopt;
    std::optional<std::string> wanted = change(outcome.value);
    if (!wanted) {
      outcome.end = UpdateEnd::unchanged;
      return outcome;
    }
    auto written =
        outcome.version == 0 ? create(*wanted) : compare_and_set(*wanted, outcome.version);
    if (!written) {
      return tl::unexpected{std::move(written.error())};
    }
    if (written->stored) {
      outcome.end = UpdateEnd::stored;
      outcome.version = written->version;
      outcome.value = std::move(wanted);
      return outcome;
    }
    if (outcome.conflicts++ >= options.retries) {
      return outcome;
    }
    base::sleep_for(pause(outcome.conflicts));
  }
}

}  // namespace holdfast
