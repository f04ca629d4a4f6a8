// How a classic talks to the server, and what is not locking.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <utility>

#include "base/ids.h"
#include "engine/batch.h"
#include "engines/mysql/mysql_classic.h"
#include "engines/mysql/mysql_errors.h"
#include "engines/relational/odd_bytes.h"
#include "engines/relational/owner_text.h"

namespace holdfast::engines {
namespace {

using engine::Talk;
using namespace std::chrono_literals;

base::Duration micros(const MysqlReply::Cell& cell) {
  return std::chrono::microseconds{cell ? std::strtoll(std::string{*cell}.c_str(), nullptr, 10)
                                        : 0};
}

}  // namespace

// Runs what `make` begins on the desk's connection, and waits for its value.
template <typename T>
T MysqlClassic::at_desk(const std::function<Talk<T>()>& make) {
  const std::lock_guard one_at_a_time{desk_mutex_};
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<T> value;
  engine::TalkConversation<T> conversation;
  conversation.begin(*driver_, make(), engine::Patience::for_outcomes, [&](T result) {
    const std::lock_guard lock{mutex};
    value.emplace(std::move(result));
    answered.notify_all();
  });
  std::unique_lock lock{mutex};
  answered.wait(lock, [&] { return value.has_value(); });
  return *std::move(value);
}

Talk<Result<std::vector<LockInfo>>> MysqlClassic::find(std::string prefix) {
  std::map<std::string, LockInfo> found;
  std::string packet;
  sql_.list(packet, prefix);
  if (auto good = co_await desk_.insist(std::move(packet), MysqlLine::Repeat::harmless); !good) {
    Error error = good.error();
    error.code = error.code == ErrorCode::outcome_unknown ? ErrorCode::unavailable : error.code;
    co_return tl::unexpected{std::move(error)};
  }
  const MysqlReply& locks = desk_.replies().back();
  for (std::size_t i = 0; i < locks.rows(); ++i) {
    HolderInfo holder;
    holder.expires_in = micros(locks.cell(i, 1));
    if (holder.expires_in <= 0s) {
      continue;
    }
    const std::string who{locks.cell(i, 2).value_or("")};
    holder.revoked = who.ends_with(relational::kRevokedMark);
    holder.party = relational::party_in(who);
    if (form_.token != TokenKind::none) {
      holder.token =
          static_cast<std::uint64_t>(micros(locks.cell(i, 3)) / 1us) * core::kTokenStride;
    }
    holder.held_for = std::max<base::Duration>(micros(locks.cell(i, 4)), 0s);
    found[std::string{*locks.cell(i, 0)}].holders.push_back(std::move(holder));
  }
  std::string waiters;
  sql_.list_waiters(waiters, prefix);
  const auto listed = co_await desk_.insist(std::move(waiters), MysqlLine::Repeat::harmless);
  for (std::size_t i = 0; listed && i < desk_.replies().back().rows(); ++i) {
    const MysqlReply& reply = desk_.replies().back();
    found[std::string{*reply.cell(i, 0)}].queue.push_back(
        {.party = relational::party_in(reply.cell(i, 1).value_or("")),
         .waiting_for = micros(reply.cell(i, 2))});
  }
  std::vector<LockInfo> all;
  for (auto& [key, info] : found) {
    info.name = relational::unescaped(key);
    all.push_back(std::move(info));
  }
  std::sort(all.begin(), all.end(),
            [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
  co_return all;
}

Result<std::vector<LockInfo>> MysqlClassic::list(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  // Spaces at the end are written in another way.
  const std::string_view searched = prefix.substr(0, prefix.find_last_not_of(' ') + 1);
  return at_desk<Result<std::vector<LockInfo>>>([&] { return find(relational::escaped(searched)); })
      .map([&](std::vector<LockInfo> locks) {
        std::erase_if(locks, [&](const LockInfo& each) { return !each.name.starts_with(prefix); });
        return locks;
      });
}

Result<LockInfo> MysqlClassic::show(std::string_view name) {
  if (auto good = engine::check_name(name); !good) {
    return tl::unexpected{good.error()};
  }
  return list(name).map([&](std::vector<LockInfo> locks) {
    LockInfo shown;
    shown.name = name;
    for (LockInfo& each : locks) {
      if (each.name == name) {
        shown = std::move(each);
      }
    }
    return shown;
  });
}

Result<std::string> MysqlClassic::init_script() {
  return sql_.create() + ";\n";
}

Result<void> MysqlClassic::init() {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return at_desk<Result<void>>(
      [&] { return desk_.insist(sql_.create(), MysqlLine::Repeat::harmless); });
}

std::vector<Finding> MysqlClassic::doctor() {
  const auto found = list("");
  if (!found) {
    return {{.level = Finding::Level::problem,
             .topic = "table",
             .text = found.error().text,
             .advice = "create the table, or run `holdfast init`"}};
  }
  return {{.level = Finding::Level::ok,
           .topic = "table",
           .text = std::to_string(found->size()) + " locks in use",
           .advice = ""}};
}

}  // namespace holdfast::engines
