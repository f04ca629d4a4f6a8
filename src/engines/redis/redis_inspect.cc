// What RedisEngine shows to people, and how it is set up.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "engine/batch.h"
#include "engines/redis/fair_strategy.h"
#include "engines/redis/redis_engine.h"
#include "engines/redis/unfair_strategy.h"

namespace holdfast::engines {
namespace {

constexpr std::size_t kKeysAtOnce = 256;

std::span<const Capabilities> capability_rows() {
  static const std::array rows{FairStrategy::row(), UnfairStrategy::row(RedisStrategyKind::simple),
                               UnfairStrategy::row(RedisStrategyKind::redisson)};
  return rows;
}
std::span<const Capabilities> no_further_rows() {
  return {};
}

std::string command(std::initializer_list<std::string_view> words) {
  std::string text;
  append_resp_head(text, words.size());
  for (const std::string_view word : words) {
    append_resp_word(text, word);
  }
  return text;
}

}  // namespace

engine::Registration redis_registration() {
  return {.scheme = "redis",
          .example = "redis://localhost/0",
          .open = &RedisEngine::open,
          .capabilities = &capability_rows};
}

engine::Registration rediss_registration() {
  return {.scheme = "rediss",
          .example = "rediss://user@host/0",
          .open = &RedisEngine::open,
          .capabilities = &no_further_rows};
}

engine::Registration redis_sentinel_registration() {
  return {.scheme = "redis+sentinel",
          .example = "redis+sentinel://a,b,c/mymaster",
          .open = &RedisEngine::open,
          .capabilities = &no_further_rows};
}

Result<RespValue> RedisEngine::ask(const std::string& command) {
  const std::lock_guard lock{desk_mutex_};
  return desk_.ask_until(command, base::BootClock::now() + options_.access.timeout);
}

Result<std::vector<std::string>> RedisEngine::scan(const std::string& pattern) {
  std::vector<std::string> keys;
  std::string cursor = "0";
  do {
    auto page = ask(command({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}));
    if (!page) {
      return tl::unexpected{page.error()};
    }
    if (page->items.size() != 2) {
      return fail(ErrorCode::unavailable, "Redis's answer makes no sense");
    }
    cursor = page->items[0].text;
    for (RespValue& each : page->items[1].items) {
      if (strategy_->is_listed(each.text)) {
        keys.push_back(std::move(each.text));
      }
    }
  } while (cursor != "0");
  return keys;
}

Result<std::vector<LockInfo>> RedisEngine::describe(std::span<const std::string> keys) {
  std::map<std::string, LockInfo> found;  // SCAN may name a key twice
  while (!keys.empty()) {
    const auto some = keys.first(std::min(keys.size(), kKeysAtOnce));
    keys = keys.subspan(some.size());
    std::string call;
    strategy_->append_look(call, some);
    auto reply = ask(call);
    if (!reply) {
      return tl::unexpected{reply.error()};
    }
    if (reply->items.size() != some.size() + 1) {
      return fail(ErrorCode::unavailable, "Redis's answer makes no sense");
    }
    const core::Duration now = std::chrono::microseconds{reply->items[0].integer};
    for (std::size_t i = 0; i < some.size(); ++i) {
      LockInfo info;
      if (options_.name_of(some[i], info.name) && strategy_->read(reply->items[i + 1], now, info)) {
        std::string name = info.name;
        found.insert_or_assign(std::move(name), std::move(info));
      }
    }
  }
  std::vector<LockInfo> all;
  for (auto& [name, info] : found) {
    all.push_back(std::move(info));
  }
  return all;
}

Result<std::vector<LockInfo>> RedisEngine::list(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return scan(options_.pattern(prefix)).and_then([&](const std::vector<std::string>& keys) {
    return describe(keys);
  });
}

Result<LockInfo> RedisEngine::show(std::string_view name) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  if (auto good = engine::check_name(name); !good) {
    return tl::unexpected{good.error()};
  }
  const std::array keys{options_.key(name)};
  return describe(keys).map([&](std::vector<LockInfo> found) {
    LockInfo nobody;
    nobody.name = name;
    return found.empty() ? nobody : std::move(found.front());
  });
}

void RedisEngine::tidy() {
  if (inherited()) {
    return;
  }
  // Keys go by themselves. Nobody looks at locks all the time.
  if (const std::unique_lock lock{desk_mutex_, std::try_to_lock}; lock) {
    desk_.close();
  }
}

Result<void> RedisEngine::init() {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return ask(command({"PING"})).map([](const RespValue&) {});
}

Result<std::string> RedisEngine::init_script() {
  return "# Nothing to set up: Redis learns our scripts from the first call. A user of its own:\n"
         "ACL SETUSER holdfast on >PASSWORD ~" +
         options_.prefix + "* &" + options_.prefix +
         "* +@read +@write +@connection +@pubsub +@scripting +time +wait +info +config|get\n";
}

}  // namespace holdfast::engines
