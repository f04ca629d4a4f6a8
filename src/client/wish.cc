#include "client/wish.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "engine/registry.h"

namespace holdfast::client {
namespace {

tl::unexpected<Error> invalid(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

std::string in_words(Duration duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration);
  return std::to_string(milliseconds.count()) + " ms";
}

// Where the store decides how long a lease lasts, whoever did not choose gets that.
Duration ttl_of(const AcquireOptions& options, const Capabilities& engine) {
  const bool fixed = !engine.lease && engine.min_ttl == engine.max_ttl;
  return fixed && options.ttl == kDefaultTtl ? engine.min_ttl : options.ttl;
}

Result<void> check_times(const AcquireOptions& options, const Capabilities& engine) {
  const Duration ttl = ttl_of(options, engine);
  if (ttl < engine.min_ttl || ttl > engine.max_ttl) {
    if (!engine.lease && ttl >= kMinTtl && ttl <= kMaxTtl) {
      return fail(ErrorCode::unsupported, "ttl is " + in_words(ttl) + ", but " + engine.engine +
                                              " leases last " + in_words(engine.min_ttl) +
                                              "; sqlite lets you choose");
    }
    return invalid("ttl is " + in_words(options.ttl) + "; choose one from " +
                   in_words(engine.min_ttl) + " to " + in_words(engine.max_ttl));
  }
  if (options.wait && *options.wait < Duration::zero()) {
    return invalid("wait is negative; use zero for one try, or leave it empty to wait for ever");
  }
  if (options.max_hold && *options.max_hold <= Duration::zero()) {
    return invalid("max_hold must be longer than zero; leave it empty for no bound");
  }
  if (options.grace && (*options.grace < Duration::zero() || *options.grace > ttl / 2)) {
    return invalid("grace must be between zero and half the ttl");
  }
  if (options.health_check && options.health_timeout <= Duration::zero()) {
    return invalid("health_timeout must be longer than zero");
  }
  return {};
}

Result<void> check_mode(const AcquireOptions& options, const Capabilities& engine) {
  if (options.mode != Mode::permits) {
    if (options.of != 0 || options.permits != 1) {
      return invalid("permits and of need mode = Mode::permits");
    }
  } else if (options.permits == 0 || options.of == 0) {
    return invalid("permits and of must be at least 1");
  } else if (options.permits > options.of) {
    return invalid("permits is " + std::to_string(options.permits) +
                   " but the semaphore has only " + std::to_string(options.of));
  } else if (options.of > kMaxPermits) {
    return invalid("of must be at most " + std::to_string(kMaxPermits));
  }
  if (options.hand_over > kMaxHandOver) {
    return invalid("hand_over must be at most " + std::to_string(kMaxHandOver));
  }
  const auto shared = [](const Capabilities& row) { return row.shared; };
  const auto permits = [](const Capabilities& row) { return row.permits; };
  const auto token = [](const Capabilities& row) { return row.token == TokenKind::rising; };
  if (options.mode == Mode::shared && !engine.shared) {
    return tl::unexpected{unsupported("mode = shared", engine, shared)};
  }
  if (options.mode == Mode::permits && !engine.permits) {
    return tl::unexpected{unsupported("mode = permits", engine, permits)};
  }
  if (options.require_token && engine.token == TokenKind::none) {
    return tl::unexpected{unsupported("a fencing token", engine, token)};
  }
  return {};
}

}  // namespace

Result<void> check_name(std::string_view name) {
  if (name.empty()) {
    return invalid("the lock's name is empty; give it 1 to 255 bytes");
  }
  if (name.size() > kMaxNameBytes) {
    return invalid("the lock's name has " + std::to_string(name.size()) +
                   " bytes; at most 255 are allowed");
  }
  return {};
}

Error unsupported(const std::string& what, const Capabilities& engine,
                  bool (*has)(const Capabilities&)) {
  std::string who;
  for (const engine::Registration& each : engine::registrations()) {
    for (const Capabilities& row : each.capabilities()) {
      if (who.empty() && row.engine == engine.engine && row.strategy != engine.strategy &&
          has(row)) {
        who = (row.strategy.empty() ? "the default strategy" : "strategy=" + row.strategy) + " or ";
      }
    }
  }
  return {ErrorCode::unsupported,
          what + " is not supported by " + engine.engine +
              (engine.strategy.empty() ? "" : " with strategy=" + engine.strategy) + "; " + who +
              "sqlite can do it",
          std::nullopt};
}

Result<Wish> make_wish(std::string_view name, const AcquireOptions& options,
                       const Capabilities& engine) {
  if (auto checked = check_name(name); !checked) {
    return tl::unexpected{std::move(checked.error())};
  }
  if (auto checked = check_times(options, engine); !checked) {
    return tl::unexpected{std::move(checked.error())};
  }
  if (auto checked = check_mode(options, engine); !checked) {
    return tl::unexpected{std::move(checked.error())};
  }
  Wish wish;
  wish.name = name;
  wish.terms = {.shape = {options.mode, options.permits, options.of},
                .ttl = ttl_of(options, engine),
                .renew = options.renew,
                .queue = options.wait != Duration::zero(),
                .barge = !options.fair,
                .hand_over = options.hand_over,
                .grace = options.grace.value_or(ttl_of(options, engine) / kGracesPerTtl)};
  if (options.max_hold <= kLongestWait) {
    wish.max_hold = options.max_hold;
  }
  if (options.health_check) {
    wish.health = std::make_shared<HealthCheck>(
        HealthCheck{options.health_check, std::min(options.health_timeout, kLongestWait)});
  }
  if (options.owner) {
    wish.owner = options.owner->id();
  }
  return wish;
}

}  // namespace holdfast::client
