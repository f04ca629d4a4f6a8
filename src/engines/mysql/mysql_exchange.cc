#include "engines/mysql/mysql_exchange.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/ids.h"
#include "engine/batch.h"
#include "engines/mysql/mysql_doorbell.h"

namespace holdfast::engines {
namespace {

using core::Acquire;
using core::Outcome;
using core::Release;
using core::Renew;
using core::Requeue;
using core::Status;

// MariaDB turns longer lists of names into something else than a range.
constexpr std::size_t kMaxWindow = 900;
constexpr int kCollisionsTogether = 2;  // then one name at a time
constexpr base::Duration kShortPause = std::chrono::microseconds{200};
constexpr base::Duration kLongPause = std::chrono::milliseconds{20};

base::Duration jittered(base::Duration most) {
  const auto range = static_cast<std::uint64_t>(most.count());
  return base::Duration{static_cast<std::int64_t>(range / 2 + base::random_u64() % (range / 2))};
}

}  // namespace

MysqlExchange::MysqlExchange(const MysqlContext& context)
    : context_{context}, session_{context.options} {}

// --- the batch

void MysqlExchange::begin(std::span<const core::Command> batch, engine::Done done) {
  batch_ = batch;
  done_ = std::move(done);
  outcomes_.assign(batch.size(), Outcome{});
  deadline_ = base::BootClock::now() + context_.options.timeout;
  given_up_ = false;
  collisions_ = 0;
  lost_races_ = 0;
  tables_made_ = false;
  looks_before_ = context_.doorbell.looks();
  window_ = {};
  window_size_ = kMaxWindow;
  sort_out(batch);
  if (session_.is_stale()) {
    session_.start_connect();
    step_ = Step::connect;
  } else if (!start_window()) {
    step_ = Step::pause;  // an empty batch
    resume_at_ = base::Time::min();
  }
}

// By name, in one order everywhere: whoever touches several rows at once does
// it in the same order as everybody else.
void MysqlExchange::sort_out(std::span<const core::Command> batch) {
  std::vector<std::size_t> order;
  lines_.clear();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (auto good = engine::check_name(batch[i].name); !good) {
      outcomes_[i] = engine::failed(good.error());
    } else {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return batch[one].name < batch[other].name;
  });
  for (const std::size_t i : order) {
    if (lines_.empty() || lines_.back().name != batch[i].name) {
      lines_.push_back({.name = batch[i].name, .commands = {}});
    }
    lines_.back().commands.push_back(i);
  }
  for (Line& line : lines_) {
    recognize_plain(line);
  }
}

void MysqlExchange::recognize_plain(Line& line) const {
  const auto operation = [&](std::size_t i) { return &batch_[line.commands[i]].operation; };
  const auto plain_take = [](const core::Operation* op) -> const Acquire* {
    const auto* acquire = std::get_if<Acquire>(op);
    const bool sane = acquire != nullptr && acquire->shape == core::Shape{} &&
                      acquire->ttl > base::Duration::zero() && acquire->ttl <= kMaxTtl &&
                      acquire->window > base::Duration::zero() && acquire->window <= kMaxTtl;
    return sane ? acquire : nullptr;
  };
  if (line.commands.size() == 1) {
    line.give_back = std::get_if<Release>(operation(0));
    line.prolong = std::get_if<Renew>(operation(0));
    line.take = plain_take(operation(0));
  } else if (line.commands.size() == 2) {
    const auto* release = std::get_if<Release>(operation(0));
    const auto* acquire = plain_take(operation(1));
    if (release != nullptr && acquire != nullptr) {
      line.give_back = release;
      line.take = acquire;
    }
  }
}

void MysqlExchange::finish() {
  const engine::Done done = std::move(done_);
  engine::Outcomes outcomes = std::move(outcomes_);
  done(std::move(outcomes));
}

void MysqlExchange::settle(std::size_t command, Outcome outcome) {
  const core::Operation& operation = batch_[command].operation;
  const auto* acquire = std::get_if<Acquire>(&operation);
  const auto* requeue = std::get_if<Requeue>(&operation);
  const auto* poll = std::get_if<core::Poll>(&operation);
  const core::RequestId* id = acquire != nullptr   ? &acquire->id
                              : requeue != nullptr ? &requeue->next.id
                              : poll != nullptr    ? &poll->id
                                                   : nullptr;
  if (id != nullptr && outcome.status == Status::queued) {
    context_.doorbell.expect(*id, batch_[command].name, looks_before_);
  } else if (id != nullptr && outcome.status != Status::failed) {
    context_.doorbell.dismiss(*id);
  }
  if (const auto* release = std::get_if<Release>(&operation)) {
    context_.doorbell.dismiss(release->id);
  }
  if (outcome.lease_for > base::Duration::zero()) {
    outcome.lease_for = std::max(outcome.lease_for - context_.options.max_skew, base::Duration{1});
  }
  outcomes_[command] = std::move(outcome);
}

void MysqlExchange::fail_line(Line& line, const Error& error) {
  for (const std::size_t command : line.commands) {
    settle(command, engine::failed(error));
  }
  line.settled = true;
}

void MysqlExchange::fail_unsettled(const Error& error) {
  for (Line& line : lines_) {
    if (!line.settled) {
      fail_line(line, error);
    }
  }
}

// --- moving on

std::optional<engine::Conversation::Wait> MysqlExchange::advance(short ready) {
  while (true) {
    if (given_up_) {
      const bool risked =
          std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.risked; });
      fail_unsettled({risked ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
                      "the client was closed before the store answered", std::nullopt});
      session_.close();
      return std::nullopt;
    }
    if (step_ == Step::pause) {
      if (base::BootClock::now() < resume_at_) {
        return Wait{.fd = -1, .events = 0, .until = resume_at_};
      }
      if (!look_again()) {
        return std::nullopt;
      }
    }
    if (auto wait = session_.advance(ready)) {
      return wait;
    }
    ready = 0;
    if (!on_reply()) {
      return std::nullopt;
    }
  }
}

bool MysqlExchange::on_reply() {
  if (session_.error() &&
      !(step_ == Step::write && committed_at_ > 0 && session_.replies().size() >= committed_at_)) {
    return on_error(*session_.error());
  }
  for (Line& line : window_) {
    line.risked = false;
  }
  rollback_first_ = false;
  switch (step_) {
    case Step::connect:
      on_mariadb_ = session_.server_version().find("MariaDB") != std::string::npos;
      return start_window();
    case Step::make_tables:
      return start_window();
    case Step::plain:
      on_plain();
      break;
    case Step::read:
      seen_.clear();
      take_rows(session_.replies().back());
      break;
    case Step::write:
      on_write();
      break;
    case Step::pause:
      break;
  }
  return draft_and_write();
}

void MysqlExchange::send(Step step, std::string packet) {
  step_ = step;
  if (rollback_first_) {
    packet.insert(0, "ROLLBACK;");
  }
  session_.start_query(std::move(packet), context_.options.timeout);
}

// The next lines that are not settled.
bool MysqlExchange::start_window() {
  auto first = std::find_if(lines_.begin(), lines_.end(), [](const Line& l) { return !l.settled; });
  auto last = first;
  while (last != lines_.end() && !last->settled &&
         static_cast<std::size_t>(last - first) < window_size_) {
    ++last;
  }
  window_ = {first, last};
  if (window_.empty()) {
    return false;
  }
  seen_.clear();
  seen_at_ = {};
  send_plain();
  return true;
}

// --- plain statements

void MysqlExchange::send_plain() {
  std::vector<MysqlSql::Named> takes;
  std::vector<MysqlSql::Named> gives;
  std::vector<MysqlSql::Named> prolongs;
  bool others = false;
  for (Line& line : window_) {
    line.risked = line.is_plain();
    others = others || !line.is_plain();
    if (line.take != nullptr) {
      takes.push_back(
          {line.name, line.take->id, in_microseconds(line.take->ttl) + context_.options.max_skew});
    }
    if (line.give_back != nullptr) {
      gives.push_back({line.name, line.give_back->id});
    }
    if (line.prolong != nullptr) {
      prolongs.push_back({line.name, line.prolong->id});
    }
  }
  if (takes.empty() && gives.empty() && prolongs.empty()) {
    send_read();
    return;
  }
  mark_ = base::random_u64() | 1U;
  const std::size_t kinds =
      (takes.empty() ? 0U : 1U) + (gives.empty() ? 0U : 1U) + (prolongs.empty() ? 0U : 1U);
  // One of a kind is answered by the number of rows it changed and its token.
  const bool read = others || takes.size() > 1 || gives.size() > 1 || !prolongs.empty();
  in_transaction_ = kinds > 1 || gives.size() > 1;
  plan_.clear();
  std::string packet;
  const auto add = [&](Statement kind) { plan_.push_back(kind); };
  if (rollback_first_) {
    add(Statement::other);
  }
  if (in_transaction_) {
    packet += "START TRANSACTION";
    add(Statement::other);
  }
  if (!gives.empty()) {
    context_.sql.give_back(packet, gives, mark_);
    add(Statement::give_back);
  }
  if (!takes.empty()) {
    context_.sql.take(packet, takes);
    add(Statement::take);
  }
  if (!prolongs.empty()) {
    context_.sql.prolong(packet, prolongs, mark_);
    add(Statement::prolong);
  }
  if (read) {
    std::vector<std::string_view> names;
    for (const Line& line : window_) {
      names.push_back(line.name);
    }
    context_.sql.read(packet, names);
    add(Statement::read);
  }
  if (in_transaction_) {
    packet += ";COMMIT";
    add(Statement::other);
  }
  send(Step::plain, std::move(packet));
}

void MysqlExchange::on_plain() {
  const auto& replies = session_.replies();
  const auto find = [&](Statement kind) -> const MysqlReply* {
    const auto found = std::find(plan_.begin(), plan_.end(), kind);
    return found == plan_.end() ? nullptr
                                : &replies.at(static_cast<std::size_t>(found - plan_.begin()));
  };
  if (const MysqlReply* rows = find(Statement::read)) {
    take_rows(*rows);
    for (Line& line : window_) {
      settle_plain(line);
    }
    return;
  }
  const MysqlReply* taken = find(Statement::take);
  const MysqlReply* given = find(Statement::give_back);
  for (Line& line : window_) {
    if (line.give_back != nullptr) {
      if (given->affected == 0) {
        continue;
      }
      settle(line.commands.front(), {.status = Status::released});
      line.commands.erase(line.commands.begin());
      line.give_back = nullptr;
    }
    if (line.take != nullptr && taken->affected > 0) {
      settle(line.commands.back(),
             {.status = Status::granted,
              .token = taken->insert_id,
              .lease_for = in_microseconds(line.take->ttl) + context_.options.max_skew});
      line.commands.clear();
    }
    line.settled = line.commands.empty();
  }
}

// By what the row says after the statements.
void MysqlExchange::settle_plain(Line& line) {
  const Seen* row = seen(line);
  if (!line.is_plain() || row == nullptr || row->version == 0) {
    return;
  }
  if (line.give_back != nullptr) {
    if (!mark_is_ours(line)) {
      return;
    }
    settle(line.commands.front(), {.status = Status::released});
    line.commands.erase(line.commands.begin());
    line.give_back = nullptr;
  }
  const auto left = row->row.until - row->now;
  const bool stands = row->row.rest.empty() && left > base::Duration::zero();
  const std::uint64_t token = row->row.last_token - (core::kTokenStride - 1);
  if (line.take != nullptr && stands && row->row.request == line.take->id) {
    settle(line.commands.back(), {.status = Status::granted, .token = token, .lease_for = left});
    line.commands.clear();
  }
  if (line.prolong != nullptr && mark_is_ours(line) && stands &&
      row->row.request == line.prolong->id) {
    settle(line.commands.back(), {.status = Status::renewed, .token = token, .lease_for = left});
    line.commands.clear();
  }
  line.settled = line.commands.empty();
}

bool MysqlExchange::mark_is_ours(const Line& line) const {
  const Seen* row = seen(line);
  return row != nullptr && row->mark == mark_;
}

// --- reading

void MysqlExchange::send_read() {
  std::vector<std::string_view> names;
  for (const Line& line : window_) {
    if (!line.settled) {
      names.push_back(line.name);
    }
  }
  std::string packet;
  context_.sql.read(packet, names);
  send(Step::read, std::move(packet));
}

void MysqlExchange::take_rows(const MysqlReply& reply) {
  for (std::size_t i = 0; i < reply.rows(); ++i) {
    MysqlRow read = read_row(reply, i);
    seen_at_ = read.now;
    if (!read.is_clock_only) {
      seen_.push_back(
          {std::string{read.name}, {read.version, read.mark, read.now, std::move(read.row)}});
    }
  }
  std::sort(seen_.begin(), seen_.end(),
            [](const auto& one, const auto& other) { return one.first < other.first; });
}

// nullptr: not read yet. A line that was read and has no row is Seen{}.
const MysqlExchange::Seen* MysqlExchange::seen(const Line& line) const {
  const auto found =
      std::lower_bound(seen_.begin(), seen_.end(), line.name,
                       [](const auto& one, std::string_view name) { return one.first < name; });
  return found != seen_.end() && found->first == line.name ? &found->second : nullptr;
}

// --- through the lock record

// Other nodes' clocks may be ahead of the one that decides: a grant lasts
// longer in the table than its holder is told.
core::Operation MysqlExchange::adapted(const core::Operation& operation) const {
  core::Operation adapted = operation;
  const auto adapt = [&](Acquire& acquire) {
    const auto stretch = [&](base::Duration& time) {
      if (time > base::Duration::zero() && time <= kMaxTtl) {
        time = std::max(in_microseconds(time), base::Duration{std::chrono::microseconds{1}}) +
               context_.options.max_skew;
      }
    };
    stretch(acquire.ttl);
    stretch(acquire.window);
  };
  if (auto* acquire = std::get_if<Acquire>(&adapted)) {
    adapt(*acquire);
  } else if (auto* requeue = std::get_if<Requeue>(&adapted)) {
    adapt(requeue->next);
  }
  return adapted;
}

bool MysqlExchange::draft_and_write() {
  drafts_.clear();
  bool unread = false;
  for (Line& line : window_) {
    if (line.settled) {
      continue;
    }
    if (seen_at_ == base::Time{}) {
      unread = true;
      break;
    }
    const Seen* row = seen(line);
    auto entry = row == nullptr ? LockEntry{} : entry_of(row->row);
    if (!entry) {
      fail_line(line, entry.error());
      continue;
    }
    const core::LockRecord before = entry->record;
    Draft draft{&line, row == nullptr ? 0 : row->version, std::move(*entry), {}, {}};
    const auto micros = std::chrono::floor<std::chrono::microseconds>(seen_at_.time_since_epoch());
    const core::LockRecord::Context moment{
        .now = seen_at_, .token_floor = static_cast<std::uint64_t>(micros.count())};
    for (const std::size_t command : line.commands) {
      const core::Operation operation = adapted(batch_[command].operation);
      if (const auto* acquire = std::get_if<Acquire>(&operation)) {
        draft.entry.parties[acquire->session] = clipped(context_.client.party);
      } else if (const auto* requeue = std::get_if<Requeue>(&operation)) {
        draft.entry.parties[requeue->next.session] = clipped(context_.client.party);
      }
      draft.outcomes.push_back(draft.entry.record.apply(operation, moment, draft.wakes));
    }
    if (draft.entry.record == before) {
      for (std::size_t i = 0; i < line.commands.size(); ++i) {
        settle(line.commands[i], std::move(draft.outcomes[i]));
      }
      line.settled = true;
      continue;
    }
    drafts_.push_back(std::move(draft));
  }
  if (unread) {
    send_read();
    return true;
  }
  if (!drafts_.empty()) {
    send_write();
    return true;
  }
  seen_at_ = {};
  return start_window();
}

void MysqlExchange::send_write() {
  std::vector<MysqlSql::Change> updates;
  std::vector<MysqlSql::Change> inserts;
  std::vector<core::Wake> wakes;
  for (Draft& draft : drafts_) {
    draft.line->risked = true;
    (draft.version == 0 ? inserts : updates)
        .push_back({draft.line->name, draft.version, row_of(draft.entry)});
    wakes.insert(wakes.end(), draft.wakes.begin(), draft.wakes.end());
  }
  updates_ = updates.size();
  inserts_ = inserts.size();
  mark_ = base::random_u64() | 1U;
  in_transaction_ = drafts_.size() > 1;
  std::string packet = in_transaction_ ? "START TRANSACTION" : "";
  committed_at_ =
      (rollback_first_ ? 1U : 0U) + (updates.empty() ? 0U : 1U) + (inserts.empty() ? 0U : 1U);
  if (!updates.empty()) {
    context_.sql.update(packet, updates, mark_);
  }
  if (!inserts.empty()) {
    context_.sql.insert(packet, inserts, mark_);
  }
  if (in_transaction_) {
    updates.insert(updates.end(), inserts.begin(), inserts.end());
    context_.sql.read_marked(packet, updates, mark_);
    packet += ";COMMIT";
    committed_at_ += 3;
  }
  // Rung even if the row turns out to have changed: a ring is only a hint.
  context_.doorbell.append_rings(packet, wakes, on_mariadb_);
  send(Step::write, std::move(packet));
}

void MysqlExchange::on_write() {
  const auto& replies = session_.replies();
  std::vector<std::string_view> written;
  if (in_transaction_) {
    const MysqlReply& marked = replies.at(committed_at_ - 2);
    for (std::size_t i = 0; i < marked.rows(); ++i) {
      written.push_back(*marked.cell(i, 0));
    }
  } else if (replies.at(committed_at_ - 1).affected > 0) {
    written.push_back(drafts_.front().line->name);
  }
  for (Draft& draft : drafts_) {
    if (std::find(written.begin(), written.end(), draft.line->name) == written.end()) {
      continue;
    }
    for (std::size_t i = 0; i < draft.outcomes.size(); ++i) {
      settle(draft.line->commands[i], std::move(draft.outcomes[i]));
    }
    draft.line->settled = true;
    context_.doorbell.ring_ourselves(draft.wakes);
  }
  lost_races_ += written.size() < drafts_.size() ? 1 : 0;
  seen_.clear();
  seen_at_ = {};
}

// --- when something goes wrong

bool MysqlExchange::on_error(const MysqlError& error) {
  seen_.clear();
  seen_at_ = {};
  switch (trouble_of(error)) {
    case MysqlTrouble::disconnected:
      for (Line& line : window_) {
        if (std::exchange(line.risked, false) && !line.settled) {
          fail_line(line, {ErrorCode::outcome_unknown,
                           "the connection broke before the database answered: " + error.text,
                           std::nullopt});
        }
      }
      break;
    case MysqlTrouble::collision:
      return after_collision();
    case MysqlTrouble::no_table:
      if (!std::exchange(tables_made_, true)) {
        std::string packet;
        for (const std::string& statement : context_.sql.schema()) {
          packet += (packet.empty() ? "" : ";") + statement;
        }
        rollback_first_ = true;
        send(Step::make_tables, std::move(packet));
        return true;
      }
      [[fallthrough]];
    case MysqlTrouble::final:
      rollback_first_ = in_transaction_;
      fail_unsettled(as_error(error, context_.options));
      return false;
    case MysqlTrouble::not_ready:
      break;
  }
  for (Line& line : window_) {
    line.risked = false;
  }
  const bool all_settled =
      std::all_of(lines_.begin(), lines_.end(), [](const Line& l) { return l.settled; });
  if (all_settled) {
    return false;
  }
  if (base::BootClock::now() >= deadline_) {
    fail_unsettled(as_error(error, context_.options));
    return false;
  }
  return pause_then_retry();
}

bool MysqlExchange::after_collision() {
  for (Line& line : window_) {
    line.risked = false;
  }
  rollback_first_ = true;
  if (++collisions_ >= kCollisionsTogether) {
    window_size_ = 1;
  }
  if (base::BootClock::now() >= deadline_ && collisions_ > 2 * kCollisionsTogether) {
    fail_unsettled({ErrorCode::unavailable,
                    "the database went on choosing our statements as victims of deadlocks",
                    std::nullopt});
    return false;
  }
  return pause_then_retry();
}

bool MysqlExchange::pause_then_retry() {
  step_ = Step::pause;
  const bool connected = session_.is_connected();
  resume_at_ = base::BootClock::now() +
               jittered(connected ? kShortPause * std::max(collisions_, 1) : kLongPause);
  return true;
}

// After a pause.
bool MysqlExchange::look_again() {
  if (!session_.is_connected()) {
    session_.start_connect();
    step_ = Step::connect;
    return true;
  }
  return start_window();
}

}  // namespace holdfast::engines
