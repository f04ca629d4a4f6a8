// What RedlockEngine shows to people: what a majority of nodes agrees about.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "core/quorum.h"
#include "engine/batch.h"
#include "engines/redis/redis_wire.h"
#include "engines/redlock/redlock_engine.h"
#include "engines/redlock/redlock_script.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMostSkew = 1'000'000;  // microseconds

std::string words(std::initializer_list<std::string_view> all) {
  std::string text;
  append_resp_head(text, all.size());
  for (const std::string_view word : all) {
    append_resp_word(text, word);
  }
  return text;
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The text before the next bar, which is taken away with it.
std::string_view take_part(std::string_view& text) {
  const std::size_t bar = std::min(text.find('|'), text.size());
  const std::string_view part = text.substr(0, bar);
  text.remove_prefix(std::min(bar + 1, text.size()));
  return part;
}

// As TIME has it: seconds.us
core::Duration moment(std::string_view text) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  const std::string_view micros = text.substr(std::min(dot + 1, text.size()));
  return std::chrono::seconds{number(text.substr(0, dot))} +
         std::chrono::microseconds{number(micros)};
}

// "hf1:" id flag session ttl|since|token|who
HolderInfo holder_from(std::string_view stored, std::int64_t pttl, core::Duration now) {
  constexpr std::size_t kHead = 4 + 16 + 1 + 16;
  HolderInfo holder;
  holder.expires_in = std::max<core::Duration>(std::chrono::milliseconds{pttl}, 1us);
  if (stored.size() < kHead || !stored.starts_with("hf1:")) {
    holder.party.label = "another program";
    return holder;
  }
  holder.revoked = stored[20] == 'r';
  stored.remove_prefix(kHead);
  take_part(stored);
  const core::Duration since = moment(take_part(stored));
  holder.held_for = std::max(now - since, core::Duration::zero());
  holder.token = number(take_part(stored));
  holder.party = unpack_party(stored);
  return holder;
}

struct Sight {
  std::map<std::string, std::vector<HolderInfo>> by_owner;
  std::vector<WaiterInfo> queue;
};

void look_at(const RespValue& lock, core::Duration now, Sight& sight) {
  if (lock.items.size() != 3) {
    return;
  }
  const std::string& stored = lock.items[0].text;
  if (!stored.empty()) {
    sight.by_owner[stored.substr(0, 20)].push_back(holder_from(stored, lock.items[1].integer, now));
  }
  std::vector<WaiterInfo> queue;
  for (const RespValue& each : lock.items[2].items) {
    std::string_view text = each.text;
    const auto since = std::chrono::microseconds{number(take_part(text))};
    queue.push_back({.party = unpack_party(text),
                     .waiting_for = std::max(now - since, core::Duration::zero())});
  }
  if (queue.size() > sight.queue.size()) {
    sight.queue = std::move(queue);
  }
}

}  // namespace

Result<RespValue> RedlockEngine::ask(std::size_t node, const std::string& command) {
  return desks_[node]->ask_until(command, base::BootClock::now() + options_.access.timeout);
}

Result<std::vector<std::string>> RedlockEngine::keys_of(std::size_t node, std::string_view prefix) {
  RedisOptions spelling = options_.node(node);
  std::vector<std::string> names;
  std::string cursor = "0";
  do {
    auto page = ask(node, words({"SCAN", cursor, "MATCH", spelling.pattern(prefix), "COUNT", "1000",
                                 "TYPE", "string"}));
    if (!page || page->items.size() != 2) {
      return tl::unexpected{
          page ? Error{ErrorCode::unavailable, "Redis's answer makes no sense", std::nullopt}
               : page.error()};
    }
    cursor = page->items[0].text;
    for (const RespValue& each : page->items[1].items) {
      std::string name;
      if (spelling.name_of(each.text, name) && !is_redlock_key(name)) {
        names.push_back(std::move(name));
      }
    }
  } while (cursor != "0");
  return names;
}

Result<std::vector<LockInfo>> RedlockEngine::describe(std::span<const std::string> names) {
  std::map<std::string, Sight> seen;
  std::size_t answered = 0;
  Error trouble;
  std::string call;
  append_resp_head(call, 3 + names.size() + 1);
  for (const std::string& word :
       {std::string{"EVAL"}, std::string{kRedlockLook}, std::to_string(names.size())}) {
    append_resp_word(call, word);
  }
  for (const std::string& name : names) {
    append_resp_word(call, options_.key(name));
  }
  append_resp_word(call, options_.prefix);
  for (std::size_t node = 0; node < desks_.size(); ++node) {
    const auto reply = ask(node, call);
    if (!reply || reply->items.size() != names.size() + 1) {
      trouble = reply ? trouble : reply.error();
      continue;
    }
    ++answered;
    const core::Duration now = std::chrono::microseconds{reply->items[0].integer};
    for (std::size_t i = 0; i < names.size(); ++i) {
      look_at(reply->items[i + 1], now, seen[names[i]]);
    }
  }
  const core::Quorum nodes{desks_.size(), {}};
  if (answered < nodes.majority()) {
    return tl::unexpected{trouble};
  }
  std::vector<LockInfo> all;
  for (auto& [name, sight] : seen) {
    LockInfo info;
    info.name = name;
    info.queue = std::move(sight.queue);
    for (auto& [owner, votes] : sight.by_owner) {
      if (votes.size() >= nodes.majority()) {
        const auto longest_first = [](const HolderInfo& a, const HolderInfo& b) {
          return a.expires_in > b.expires_in;
        };
        std::sort(votes.begin(), votes.end(), longest_first);
        info.holders.push_back(votes[nodes.majority() - 1]);
      }
    }
    if (!info.holders.empty() || !info.queue.empty()) {
      all.push_back(std::move(info));
    }
  }
  return all;
}

Result<std::vector<LockInfo>> RedlockEngine::list(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  const std::lock_guard lock{desk_mutex_};
  std::set<std::string> names;
  Error trouble;
  std::size_t answered = 0;
  for (std::size_t node = 0; node < desks_.size(); ++node) {
    if (const auto found = keys_of(node, prefix)) {
      names.insert(found->begin(), found->end());
      ++answered;
    } else {
      trouble = found.error();
    }
  }
  if (answered < core::Quorum{desks_.size(), {}}.majority()) {
    return tl::unexpected{trouble};
  }
  const std::vector<std::string> all{names.begin(), names.end()};
  return all.empty() ? Result<std::vector<LockInfo>>{} : describe(all);
}

Result<LockInfo> RedlockEngine::show(std::string_view name) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  if (auto good = RedlockOptions::check_name(name); !good) {
    return tl::unexpected{good.error()};
  }
  const std::lock_guard lock{desk_mutex_};
  const std::array names{std::string{name}};
  return describe(names).map([&](std::vector<LockInfo> found) {
    LockInfo nobody;
    nobody.name = name;
    return found.empty() ? nobody : std::move(found.front());
  });
}

void RedlockEngine::tidy() {
  if (inherited()) {
    return;
  }
  if (const std::unique_lock lock{desk_mutex_, std::try_to_lock}; lock) {
    for (const auto& desk : desks_) {
      desk->close();
    }
  }
}

Result<void> RedlockEngine::init() {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  const std::lock_guard lock{desk_mutex_};
  for (std::size_t node = 0; node < desks_.size(); ++node) {
    if (const auto pong = ask(node, words({"PING"})); !pong) {
      return tl::unexpected{pong.error()};
    }
  }
  return {};
}

Result<std::string> RedlockEngine::init_script() {
  return "# Nothing to set up on the nodes. They count from max_ttl after their start on; for a\n"
         "# brand-new set open the store once with first_start=true.\n";
}

std::vector<Finding> RedlockEngine::doctor() {
  using Level = Finding::Level;
  std::vector<Finding> findings;
  if (inherited()) {
    return {{Level::problem, "store", engine::inherited_by_fork().text, "open it again"}};
  }
  const std::lock_guard lock{desk_mutex_};
  std::int64_t earliest = 0;
  std::int64_t latest = 0;
  std::size_t answered = 0;
  for (std::size_t node = 0; node < desks_.size(); ++node) {
    const std::string topic = "node " + options_.nodes[node].text();
    const auto info = ask(node, words({"INFO"}));
    const auto time = ask(node, words({"TIME"}));
    if (!info || !time || time->items.size() != 2) {
      findings.push_back({Level::warning, topic, info ? "no answer to TIME" : info.error().text,
                          "bring it back: every node down makes the next failure worse"});
      continue;
    }
    ++answered;
    const std::int64_t skew = std::atoll(time->items[0].text.c_str()) * 1'000'000 +
                              std::atoll(time->items[1].text.c_str()) -
                              static_cast<std::int64_t>(base::wall_microseconds());
    earliest = answered == 1 ? skew : std::min(earliest, skew);
    latest = answered == 1 ? skew : std::max(latest, skew);
    const bool evicts = info->text.find("maxmemory_policy:noeviction") == std::string::npos;
    findings.push_back(evicts ? Finding{Level::warning, topic, "may evict locks",
                                        "set maxmemory-policy to noeviction"}
                              : Finding{Level::ok, topic, "answers", ""});
  }
  if (answered < core::Quorum{desks_.size(), {}}.majority()) {
    findings.push_back({Level::problem, "majority", "too few nodes answer", "bring them back"});
  }
  findings.push_back(
      latest - earliest > kMostSkew
          ? Finding{Level::warning, "clocks", "the nodes' clocks are seconds apart",
                    "set them with NTP: after a loss of data tokens rise only within their skew"}
          : Finding{Level::ok, "clocks", "the nodes agree", ""});
  if (options_.first_start) {
    findings.push_back({Level::warning, "first_start",
                        "nodes that forgot their leases count at once: two holders are possible",
                        "leave first_start out as soon as the set is up"});
  }
  return findings;
}

}  // namespace holdfast::engines
