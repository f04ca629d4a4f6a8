// The values of RedisEngine: a hash a value, changed by a script.
#include <algorithm>
#include <utility>

#include "base/jitter.h"
#include "engine/batch.h"
#include "engines/redis/redis_engine.h"
#include "engines/redis/redis_errors.h"

namespace holdfast::engines {
namespace {

using std::chrono::microseconds;

constexpr base::Duration kShortestPause = std::chrono::milliseconds{10};
constexpr base::Duration kLongestPause = std::chrono::milliseconds{50};

// core/value_record where the data is. A test compares the two.
//   KEYS[1]  the value
//   ARGV[1]  now in microseconds; empty: TIME
// To read, no more; the answer is version, written, what is left of the
// hold-off, and the bytes unless it was erased. To write:
//   ARGV[2]  the version that is expected; empty: none
//   ARGV[3]  the writer's id
//   ARGV[4]  the hold-off in microseconds
//   ARGV[5]  the bytes; absent: erase
// the answer is applied (1 or 0), version, written.
constexpr std::string_view kValueScript = R"lua(
local MEMORY = 3600000000  -- of what was erased
local key, now = KEYS[1], tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local function text(number) return string.format('%.0f', number) end

local found = redis.call('HMGET', key, 'version', 'written', 'hold_off_until', 'writer', 'value')
local version, written = tonumber(found[1]), tonumber(found[2])
if version and not found[5] and written + MEMORY <= now then version = nil end

if #ARGV == 1 then
  if not version then return {} end
  return {version, written, math.max(0, tonumber(found[3]) - now), found[5]}
end
if version and found[4] == ARGV[3] then return {1, version, written} end
local current = version and found[5] and version or 0
if current ~= (tonumber(ARGV[2]) or 0) then return {0, current, 0} end

version = version and version + 1 or math.min(now, 4503599627370496)
local hold_off = tonumber(ARGV[4])
if hold_off > 0 then hold_off = now + hold_off end
redis.call('HSET', key, 'version', text(version), 'written', text(now),
  'hold_off_until', text(hold_off), 'writer', ARGV[3])
if ARGV[5] then
  redis.call('HSET', key, 'value', ARGV[5])
  redis.call('PERSIST', key)
else
  redis.call('HDEL', key, 'value')
  redis.call('PEXPIRE', key, MEMORY / 1000)
end
return {1, version, now}
)lua";

std::string micros(core::Duration time) {
  return std::to_string(std::chrono::ceil<microseconds>(time).count());
}

Error nonsense() {
  return {ErrorCode::unavailable, "Redis's answer makes no sense", std::nullopt};
}

core::Value value_of(RespValue& reply) {
  core::Value value;
  value.version = static_cast<std::uint64_t>(reply.items[0].integer);
  value.written = static_cast<core::Micros>(reply.items[1].integer);
  value.hold_off = microseconds{reply.items[2].integer};
  if (reply.items.size() > 3 && reply.items[3].is(RespValue::Kind::text)) {
    value.bytes = std::move(reply.items[3].text);
  }
  return value;
}

std::string words(const core::ValueWrite* write, const std::string& key, const std::string& now) {
  static const RedisScript script{kValueScript};
  std::string call;
  const std::size_t more = write == nullptr ? 0 : write->bytes ? 4 : 3;
  script.append_call(call, 1, 1 + more, true);
  append_resp_word(call, key);
  append_resp_word(call, now);
  if (write != nullptr) {
    append_resp_word(call, write->expected ? std::to_string(*write->expected) : "");
    append_resp_word(call, write->writer.hex());
    append_resp_word(call, micros(write->hold_off));
    if (write->bytes) {
      append_resp_word(call, *write->bytes);
    }
  }
  return call;
}

// A write that a failover would forget is none yet.
Result<RespValue> acknowledged(RespValue written, unsigned replicas, base::Duration timeout,
                               RedisConnector& desk) {
  const bool applied = !written.items.empty() && written.items[0].integer == 1;
  if (replicas == 0 || !applied) {
    return written;
  }
  const auto half = std::chrono::ceil<std::chrono::milliseconds>(timeout / 2);
  std::string wait;
  append_resp_command(wait, "WAIT", std::to_string(replicas), std::to_string(half.count()));
  const auto count = desk.exchange_until(wait, base::BootClock::now() + timeout);
  if (!count) {
    desk.close();  // what comes late must not answer somebody else
  } else if (count->is_error()) {
    return fail(ErrorCode::outcome_unknown, redis_error(count->text).text);
  } else if (count->integer >= std::int64_t{replicas}) {
    return written;
  }
  return fail(ErrorCode::outcome_unknown, "too few replicas have acknowledged the write in time");
}

}  // namespace

RedisOptions RedisEngine::value_names() const {
  RedisOptions names = options_;
  names.prefix += "value:";
  return names;
}

// outcome_unknown if it was sent and no answer came. Asked again where Redis
// refuses for a reason that may pass.
Result<RespValue> RedisEngine::call_on_value(const core::ValueWrite* write,
                                             const std::string& key) {
  const auto now = client_.now ? micros(client_.now().time_since_epoch()) : "";
  const base::Time no_more_tries = base::BootClock::now() + options_.access.timeout;
  const std::lock_guard lock{desk_mutex_};
  while (true) {
    const base::Time deadline = base::BootClock::now() + options_.access.timeout;
    if (desk_.is_ready() && desk_.link().has_ended()) {
      desk_.close();
    }
    if (auto connected = desk_.connect_until(deadline); !connected) {
      return tl::unexpected{std::move(connected.error())};
    }
    auto reply = desk_.exchange_until(words(write, key, now), deadline);
    if (!reply) {
      desk_.close();
      reply.error().code = write != nullptr ? ErrorCode::outcome_unknown : ErrorCode::unavailable;
      return reply;
    }
    if (!reply->is_error()) {
      return write == nullptr ? reply
                              : acknowledged(*std::move(reply), options_.wait_replicas,
                                             options_.access.timeout, desk_);
    }
    if (!is_passing(reply->text) || base::BootClock::now() >= no_more_tries) {
      return tl::unexpected{redis_error(reply->text)};
    }
    if (is_demoted(reply->text)) {
      desk_.close();
    }
    base::sleep_for(base::random_between(kShortestPause, kLongestPause));
  }
}

Result<std::optional<core::Value>> RedisEngine::load_value(std::string_view name) {
  if (!capabilities().values) {
    return Engine::load_value(name);
  }
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  auto reply = engine::check_name(name).and_then(
      [&] { return call_on_value(nullptr, value_names().key(name)); });
  if (!reply) {
    return tl::unexpected{std::move(reply.error())};
  }
  std::optional<core::Value> found;
  if (reply->items.size() >= 3) {
    found.emplace(value_of(*reply));
  }
  return found;
}

Result<core::ValueOutcome> RedisEngine::write_value(const core::ValueWrite& write) {
  if (!capabilities().values) {
    return Engine::write_value(write);
  }
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  auto reply = engine::check_name(write.name).and_then([&] {
    return call_on_value(&write, value_names().key(write.name));
  });
  if (!reply) {
    return tl::unexpected{std::move(reply.error())};
  }
  if (reply->items.size() != 3) {
    return tl::unexpected{nonsense()};
  }
  return core::ValueOutcome{.applied = reply->items[0].integer == 1,
                            .version = static_cast<std::uint64_t>(reply->items[1].integer),
                            .written = static_cast<core::Micros>(reply->items[2].integer)};
}

Result<std::vector<core::NamedValue>> RedisEngine::list_values(std::string_view prefix) {
  if (!capabilities().values) {
    return Engine::list_values(prefix);
  }
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  const RedisOptions names = value_names();
  auto keys = scan(names.pattern(prefix));
  if (!keys) {
    return tl::unexpected{std::move(keys.error())};
  }
  std::sort(keys->begin(), keys->end());
  keys->erase(std::unique(keys->begin(), keys->end()), keys->end());  // SCAN may name one twice
  std::vector<core::NamedValue> all;
  for (const std::string& key : *keys) {
    core::NamedValue named;
    if (!names.name_of(key, named.name)) {
      continue;
    }
    auto reply = call_on_value(nullptr, key);
    if (!reply) {
      return tl::unexpected{std::move(reply.error())};
    }
    if (reply->items.size() > 3 && reply->items[3].is(RespValue::Kind::text)) {
      named.value = value_of(*reply);
      all.push_back(std::move(named));
    }
  }
  return all;
}

}  // namespace holdfast::engines
