#include "engines/mysql/mysql_classic.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/fork.h"
#include "base/ids.h"
#include "engine/batch.h"
#include "engines/mysql/mysql_errors.h"
#include "engines/relational/odd_bytes.h"
#include "engines/relational/owner_text.h"
#include "engines/relational/pauses.h"

namespace holdfast::engines {
namespace {

using core::Outcome;
using core::Status;
using engine::Talk;
using relational::kRevokedMark;
using Repeat = MysqlLine::Repeat;
using namespace std::chrono_literals;

// Most collations ignore spaces at the end.
std::string key_of(std::string_view name) {
  std::string key = relational::escaped(name);
  if (key.ends_with(' ')) {
    key.replace(key.size() - 1, 1, "%20");
  }
  return key;
}

std::int64_t number(const MysqlReply::Cell& cell) {
  std::int64_t value = 0;
  if (cell) {
    std::from_chars(cell->data(), cell->data() + cell->size(), value);
  }
  return value;
}

}  // namespace

Capabilities MysqlClassic::row(const ClassicForm& form) {
  Capabilities row;
  row.engine = "mysql";
  row.strategy = form.strategy;
  row.token = form.token;
  row.fifo = false;
  row.wake_up = WakeUp::retry;
  row.shared = false;
  row.permits = false;
  row.clock = "store";
  return row;
}

MysqlClassic::MysqlClassic(const ClassicForm& form, MysqlOptions options,
                           const engine::EngineOptions& client)
    : form_{form},
      options_{std::move(options)},
      sql_{form_, options_},
      client_{client},
      row_{row(form_)},
      generation_{base::fork_generation()},
      session_{options_, [this] { return sql_.create(); }},
      desk_{options_, [this] { return sql_.create(); }} {}

MysqlClassic::~MysqlClassic() {
  if (inherited()) {
    session_.forget();
    desk_.forget();
  }
  driver_.reset();
}

bool MysqlClassic::inherited() const noexcept {
  return generation_ != base::fork_generation();
}

void MysqlClassic::submit(std::size_t, std::span<const core::Command> batch,
                          engine::Patience patience, engine::Done done) {
  if (inherited()) {
    done(engine::all_failed(batch.size(), engine::inherited_by_fork()));
    return;
  }
  lane_.begin(*driver_, run(batch), patience, std::move(done));
}

Talk<engine::Outcomes> MysqlClassic::run(std::span<const core::Command> batch) {
  engine::Outcomes outcomes;
  for (const core::Command& command : batch) {
    if (auto good = engine::check_name(command.name); !good) {
      outcomes.push_back(engine::failed(good.error()));
      continue;
    }
    if (auto objection = core::objection(command.operation)) {
      outcomes.push_back(*std::move(objection));
      continue;
    }
    outcomes.push_back(co_await apply(command));
  }
  co_return outcomes;
}

Talk<Outcome> MysqlClassic::apply(const core::Command& command) {
  const std::string key = key_of(command.name);
  if (const auto* acquire = std::get_if<core::Acquire>(&command.operation)) {
    co_return co_await take(key, *acquire);
  }
  if (const auto* renewal = std::get_if<core::Renew>(&command.operation)) {
    co_return co_await renew(key, renewal->id);
  }
  if (const auto* given = std::get_if<core::Release>(&command.operation)) {
    co_return co_await release(key, given->id);
  }
  if (const auto* how = std::get_if<core::Revoke>(&command.operation)) {
    co_return co_await revoke(key, *how);
  }
  if (const auto* again = std::get_if<core::Requeue>(&command.operation)) {
    co_return co_await requeue(key, *again);
  }
  if (const auto* poll = std::get_if<core::Poll>(&command.operation)) {
    const auto known = requests_.find(poll->id);
    if (known == requests_.end()) {
      co_return Outcome{.status = Status::not_held};
    }
    const core::Acquire wish = known->second.wish;
    co_return co_await take(key, wish);
  }
  co_return engine::failed({ErrorCode::unsupported,
                            "this strategy has exclusive locks alone; strategy=lease can do it",
                            std::nullopt});
}

// Also answers for a request that has the lock: asked again, it gets the same.
Talk<Outcome> MysqlClassic::take(std::string key, core::Acquire wish) {
  if (wish.shape != core::Shape{}) {
    co_return engine::failed({ErrorCode::unsupported,
                              "this strategy has exclusive locks alone; strategy=lease can do it",
                              std::nullopt});
  }
  const std::string mine = relational::owner_text(client_.party, wish.id);
  const auto known = requests_.find(wish.id);
  // What we held and lost is not taken again behind the holder's back.
  const bool held = known != requests_.end() && known->second.held;
  const bool waited = known != requests_.end() && !held;
  ClassicSql::Values values{.key = key, .owner = mine, .ttl = wish.ttl};
  std::string packet;
  if (held) {
    sql_.look(packet, values);
  } else {
    sql_.take(packet, values);
  }
  Seen seen;
  for (int step = 0; step < 2; ++step) {
    if (auto good = co_await session_.insist(std::move(packet), Repeat::no); !good) {
      co_return engine::failed(good.error());
    }
    const MysqlReply& reply = session_.replies().back();
    seen = {};
    if (reply.rows() > 0) {
      seen.left = std::chrono::microseconds{number(reply.cell(0, 0))};
      seen.owner = reply.cell(0, 1).value_or("");
      seen.row = reply.cell(0, 2).value_or("0");
    }
    packet.clear();
    values.id = seen.row;
    if (held || reply.rows() == 0 || seen.left > 0s || !sql_.take_over(packet, values)) {
      break;
    }
  }
  Outcome outcome = judge(wish, seen);
  if (outcome.status == Status::granted && waited) {
    std::string forget;
    sql_.forget_waiter(forget, wish.id.hex());
    co_await session_.insist(std::move(forget), Repeat::no);
  }
  if (outcome.status == Status::queued) {
    co_return co_await wait_in_table(std::move(key), wish, std::move(seen));
  }
  co_return outcome;
}

// What the row says about this request.
Outcome MysqlClassic::judge(const core::Acquire& wish, const Seen& seen) {
  const std::string mine = relational::owner_text(client_.party, wish.id);
  const auto known = requests_.find(wish.id);
  const std::uint64_t token =
      static_cast<std::uint64_t>(number(std::string_view{seen.row})) * core::kTokenStride;
  if (seen.left > 0s && seen.owner == mine) {
    requests_[wish.id] = {.wish = wish, .held = true, .row = seen.row};
    return {.status = Status::granted, .token = token, .lease_for = std::min(seen.left, wish.ttl)};
  }
  if (seen.left > 0s && seen.owner == mine + std::string{kRevokedMark}) {
    return {.status = Status::revoked, .token = token, .lease_for = seen.left};
  }
  if (known != requests_.end() && known->second.held) {
    requests_.erase(known);
    return {.status = Status::not_held};
  }
  return {.status = wish.queue ? Status::queued : Status::busy};
}

Talk<Outcome> MysqlClassic::wait_in_table(std::string key, core::Acquire wish, Seen seen) {
  requests_[wish.id] = {.wish = wish, .held = false, .row = "0"};
  const base::Duration pause = relational::pause_before_retry();
  const Outcome outcome{.status = Status::queued,
                        .look_again = seen.left > 0s ? std::min(pause, seen.left) : 1ms};
  const std::string request = wish.id.hex();
  const std::string who = relational::waiter_text(client_.party);
  std::string packet;
  sql_.note_waiter(packet, {.key = key, .owner = "", .ttl = wish.window}, request, who);
  // Somebody else's table may have no list of waiters: then nobody sees them.
  co_await session_.insist(std::move(packet), Repeat::no);
  co_return outcome;
}

Talk<Outcome> MysqlClassic::renew(std::string key, core::RequestId id) {
  const auto known = requests_.find(id);
  if (known == requests_.end() || !known->second.held) {
    co_return Outcome{.status = Status::not_held};
  }
  const core::Acquire wish = known->second.wish;
  const std::string mine = relational::owner_text(client_.party, id);
  std::string packet;
  sql_.renew(packet, {.key = key, .owner = mine, .ttl = wish.ttl});
  if (auto good = co_await session_.insist(std::move(packet), Repeat::no); !good) {
    co_return engine::failed(good.error());
  }
  const MysqlReply& reply = session_.replies().back();
  Seen seen;
  if (reply.rows() > 0) {
    seen.left = std::chrono::microseconds{number(reply.cell(0, 0))};
    seen.owner = reply.cell(0, 1).value_or("");
    seen.row = reply.cell(0, 2).value_or("0");
  }
  Outcome outcome = judge(wish, seen);
  if (outcome.status == Status::granted) {
    outcome.status = Status::renewed;
  }
  co_return outcome;
}

Talk<Outcome> MysqlClassic::release(std::string key, core::RequestId id) {
  const auto known = requests_.find(id);
  const bool waits = known != requests_.end() && !known->second.held;
  std::string row = known == requests_.end() ? "0" : known->second.row;
  const std::string mine = relational::owner_text(client_.party, id);
  std::string packet;
  if (row == "0" && form_.token == TokenKind::row_id) {
    // We never heard whether there is a row of ours.
    sql_.look(packet, {.key = key, .owner = mine});
    if (auto good = co_await session_.insist(std::exchange(packet, {}), Repeat::no); !good) {
      co_return engine::failed(good.error());
    }
    const MysqlReply& reply = session_.replies().back();
    row = reply.rows() == 0 ? "0" : reply.cell(0, 2).value_or("0");
  }
  if (waits) {
    sql_.forget_waiter(packet, id.hex());
  }
  sql_.release(packet, {.key = key, .owner = mine, .id = row});
  if (auto good = co_await session_.insist(std::move(packet), Repeat::no); !good) {
    co_return engine::failed(good.error());
  }
  requests_.erase(id);
  const bool freed = session_.replies().back().affected > 0;
  co_return Outcome{.status = waits || freed ? Status::released : Status::not_held};
}

Talk<Outcome> MysqlClassic::requeue(std::string key, core::Requeue command) {
  const Outcome back = co_await release(key, command.id);
  if (back.status == Status::failed) {
    co_return back;
  }
  Outcome outcome = co_await take(key, command.next);
  outcome.gave_back = back.status == Status::released;
  if (outcome.gave_back && outcome.status == Status::queued) {
    outcome.look_again = relational::step_aside();
  }
  co_return outcome;
}

Talk<Outcome> MysqlClassic::revoke(std::string key, core::Revoke how) {
  std::string packet;
  if (how.now) {
    sql_.free_now(packet, {.key = key, .owner = ""});
  } else {
    sql_.revoke(packet, {.key = key, .owner = ""});
  }
  if (auto good = co_await session_.insist(std::move(packet), Repeat::no); !good) {
    co_return engine::failed(good.error());
  }
  const auto count = static_cast<std::uint32_t>(session_.replies().back().affected);
  co_return Outcome{.status = Status::done, .count = count};
}

}  // namespace holdfast::engines
