#include "engines/redis/fair_strategy.h"

#include <algorithm>

#include "engines/redis/fair_script.h"
#include "engines/redis/redis_wire.h"

namespace holdfast::engines {
namespace {

using std::chrono::microseconds;

core::Duration micros(const RespValue& value) {
  return microseconds{value.integer};
}

// Where each part stands in what the script stores.
namespace holder_at {
enum : std::size_t { id, session, mode, permits, token, ttl, since, expires, revoked, who, parts };
}
namespace waiter_at {
enum : std::size_t { id, session, mode, permits, ttl, window, since, expires, who, parts };
}

Mode mode_of(const RespValue& value) {
  return static_cast<Mode>(std::clamp<std::int64_t>(value.integer, 0, 2));
}

}  // namespace

FairStrategy::FairStrategy(const RedisOptions& options, const engine::EngineOptions& client)
    : RedisStrategy{options, client, kFairScript, kFairLook} {}

const Capabilities& FairStrategy::row() {
  static const Capabilities row = [] {
    Capabilities made;
    made.engine = "redis";
    made.strategy = "fair";
    made.values = true;
    made.clock = "store";
    return made;
  }();
  return row;
}

bool FairStrategy::read(const RespValue& lock, core::Duration now, LockInfo& info) const {
  if (lock.items.size() != 4) {
    return false;
  }
  for (const RespValue& each : lock.items[2].items) {
    const std::vector<RespValue>& part = each.items;
    if (part.size() != holder_at::parts || micros(part[holder_at::expires]) <= now) {
      continue;
    }
    info.holders.push_back({.party = unpack_party(part[holder_at::who].text),
                            .mode = mode_of(part[holder_at::mode]),
                            .permits = static_cast<std::uint32_t>(part[holder_at::permits].integer),
                            .token = static_cast<std::uint64_t>(part[holder_at::token].integer),
                            .held_for = now - micros(part[holder_at::since]),
                            .expires_in = micros(part[holder_at::expires]) - now,
                            .revoked = part[holder_at::revoked].integer != 0});
  }
  for (const RespValue& each : lock.items[3].items) {
    const std::vector<RespValue>& part = each.items;
    if (part.size() != waiter_at::parts || micros(part[waiter_at::expires]) <= now) {
      continue;
    }
    info.queue.push_back({.party = unpack_party(part[waiter_at::who].text),
                          .mode = mode_of(part[waiter_at::mode]),
                          .permits = static_cast<std::uint32_t>(part[waiter_at::permits].integer),
                          .waiting_for = now - micros(part[waiter_at::since])});
  }
  const bool used = !info.holders.empty() || !info.queue.empty();
  info.limit = used ? static_cast<std::uint32_t>(lock.items[1].integer) : 0;
  return used;
}

}  // namespace holdfast::engines
