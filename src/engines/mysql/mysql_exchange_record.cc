// What the lock record decides: read, apply, write back if nobody was faster.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/ids.h"
#include "engine/batch.h"
#include "engines/mysql/mysql_doorbell.h"
#include "engines/mysql/mysql_exchange.h"
#include "engines/mysql/mysql_next.h"

namespace holdfast::engines {

using core::Acquire;
using core::Requeue;

namespace {

// How long a guarded transaction counts as a holder before one looks again.
constexpr base::Duration kGuardTime = std::chrono::milliseconds{100};

// A transaction that the last holder guarded, and that still runs, counts as a
// holder for a moment.
core::LockRecord with_guard(const core::LockRecord& record, base::Time now) {
  core::LockRecord::Parts parts{.limit = record.limit(),
                                .last_token = record.last_token(),
                                .holders = record.holders(),
                                .queue = record.queue()};
  core::Shape shape;
  if (parts.limit > 0) {
    shape = {.mode = Mode::permits, .permits = parts.limit, .limit = parts.limit};
  }
  parts.holders.push_back({.id = core::RequestId::random(),
                           .session = {},
                           .shape = shape,
                           .token = parts.last_token - (core::kTokenStride - 1),
                           .ttl = kGuardTime,
                           .since = now,
                           .expires = now + kGuardTime});
  return core::LockRecord::from_parts(std::move(parts));
}

// Where the fence must stand after this step; nullopt: where it is. Whoever
// shares the lock with one of those before may leave it there.
std::optional<std::uint64_t> new_fence(const core::LockRecord& before,
                                       const core::LockRecord& after) {
  std::optional<std::uint64_t> lowest;
  for (const core::Holder& holder : after.holders()) {
    const bool stays =
        std::any_of(before.holders().begin(), before.holders().end(),
                    [&](const core::Holder& old) { return old.token == holder.token; });
    if (stays) {
      return std::nullopt;
    }
    lowest = std::min(lowest.value_or(holder.token), holder.token);
  }
  return lowest;
}

}  // namespace

std::vector<std::string_view> MysqlExchange::unsettled_names() const {
  std::vector<std::string_view> names;
  for (const Line& line : window_) {
    if (!line.settled) {
      names.push_back(line.name);
    }
  }
  return names;
}

void MysqlExchange::send_read() {
  std::string packet;
  context_.sql.read(packet, unsettled_names());
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
  } else if (auto* transfer = std::get_if<core::Transfer>(&adapted)) {
    adapt(transfer->next);
  }
  return adapted;
}

bool MysqlExchange::draft_and_write() {
  const bool all_settled =
      std::all_of(window_.begin(), window_.end(), [](const Line& line) { return line.settled; });
  if (!all_settled && seen_at_ == base::Time{}) {
    send_read();
    return true;
  }
  drafts_.clear();
  for (Line& line : window_) {
    if (!line.settled) {
      draft(line);
    }
  }
  if (!drafts_.empty()) {
    // Those that raise a fence may have to wait for it: each on its own, last.
    const auto fencing = std::stable_partition(drafts_.begin(), drafts_.end(),
                                               [](const Draft& each) { return !each.fence; });
    drafts_.erase(fencing == drafts_.begin() ? fencing + 1 : fencing, drafts_.end());
    send_write();
    return true;
  }
  return start_window();
}

// Settles the line if the record says that nothing is to be written.
void MysqlExchange::draft(Line& line) {
  const auto revokes = [&](std::size_t command) {
    return std::holds_alternative<core::Revoke>(batch_[command].operation);
  };
  if (line.doubted && std::any_of(line.commands.begin(), line.commands.end(), revokes)) {
    // Done twice it would throw out whoever has had the lock since.
    fail_line(line,
              {ErrorCode::outcome_unknown,
               "the cluster may have revoked the lock already; look who holds it", std::nullopt});
    return;
  }
  const Seen* row = seen(line);
  auto entry = row == nullptr ? LockEntry{} : entry_of(row->row);
  if (!entry) {
    fail_line(line, entry.error());
    return;
  }
  const core::LockRecord before = entry->record;
  if (line.requeue != nullptr) {
    crowded_ = row == nullptr || row->row.rest.empty() ? std::string{} : std::string{line.name};
  }
  if (!entry->record.queue().empty()) {
    waited_for_.add(line.name);
  }
  Draft draft{&line, row == nullptr ? 0 : row->version, std::move(*entry), {}, {}};
  draft.entry.parties[context_.client.session] = clipped(context_.client.party);
  apply_commands(draft, before);
  if (draft.fence && line.guarded) {
    draft.entry.record = with_guard(before, seen_at_);
    draft.entry.parties[core::SessionId{}] = {
        .label = "(a guarded transaction)", .host = "", .pid = 0};
    apply_commands(draft, draft.entry.record);
    draft.fence.reset();
  }
  // Whoever revokes what is revoked already wants its holders to be told again. And a grant that
  // was found may not be on disk yet: it is written once more, and nothing gets there before it.
  const bool found = std::any_of(
      draft.outcomes.begin(), draft.outcomes.end(),
      [](const core::Outcome& outcome) { return outcome.status == core::Status::granted; });
  if (row != nullptr && mysql::is_same_next(row->row, before, draft.entry.record)) {
    draft.next = mysql::Tokens::kept;
  }
  if (draft.entry.record == before && draft.wakes.empty() && !found) {
    settle_all(line, std::move(draft.outcomes));
  } else {
    drafts_.push_back(std::move(draft));
  }
}

void MysqlExchange::apply_commands(Draft& draft, const core::LockRecord& before) const {
  const auto micros = std::chrono::floor<std::chrono::microseconds>(seen_at_.time_since_epoch());
  const core::LockRecord::Context moment{.now = seen_at_,
                                         .token_floor = static_cast<std::uint64_t>(micros.count())};
  draft.outcomes.clear();
  draft.wakes.clear();
  for (const std::size_t command : draft.line->commands) {
    draft.outcomes.push_back(
        draft.entry.record.apply(adapted(batch_[command].operation), moment, draft.wakes));
  }
  draft.fence = draft.entry.fenced ? new_fence(before, draft.entry.record) : std::nullopt;
}

void MysqlExchange::settle_all(Line& line, std::vector<core::Outcome> outcomes) {
  for (std::size_t i = 0; i < line.commands.size(); ++i) {
    const core::Operation& operation = batch_[line.commands[i]].operation;
    if (line.doubted && std::holds_alternative<core::Release>(operation) &&
        outcomes[i].status == core::Status::not_held) {
      // By our own first attempt, perhaps: whoever asks again knows how to take that.
      outcomes[i] =
          engine::failed({ErrorCode::outcome_unknown,
                          "the cluster refused the release and may have done it", std::nullopt});
    }
    outcomes[i].gave_back =
        outcomes[i].gave_back || (line.doubted && std::holds_alternative<Requeue>(operation));
    settle(line.commands[i], std::move(outcomes[i]));
  }
  line.settled = true;
}

void MysqlExchange::send_write() {
  std::vector<MysqlSql::Change> updates;
  std::vector<MysqlSql::Change> inserts;
  std::vector<core::Wake> wakes;
  for (Draft& draft : drafts_) {
    draft.line->risked = true;
    (draft.version == 0 ? inserts : updates)
        .push_back(
            {draft.line->name, draft.version, mysql::row_with_next(draft.entry, draft.next)});
    wakes.insert(wakes.end(), draft.wakes.begin(), draft.wakes.end());
  }
  mark_ = base::random_u64() | 1U;
  const Draft& first = drafts_.front();
  in_transaction_ = drafts_.size() > 1 || first.fence || !trusts_autocommit_;
  std::string packet = in_transaction_ ? "START TRANSACTION" : "";
  committed_at_ =
      (rollback_first_ ? 1U : 0U) + (updates.empty() ? 0U : 1U) + (inserts.empty() ? 0U : 1U);
  if (first.fence) {
    context_.sql.lock_fence(packet, first.line->name, has_nowait_);
    committed_at_ += 2;
  }
  if (!updates.empty()) {
    context_.sql.update(packet, updates, mark_);
  }
  if (first.fence) {
    context_.sql.raise_fence(packet, first.line->name, *first.fence, mark_);
  }
  if (!inserts.empty()) {
    context_.sql.insert(packet, inserts, mark_);
  }
  if (in_transaction_) {
    std::vector<std::string_view> names;
    for (const Draft& draft : drafts_) {
      names.push_back(draft.line->name);
    }
    context_.sql.read_marked(packet, names, mark_, 1);
    packet += ";COMMIT";
    committed_at_ += 3;
    commits_at_ = committed_at_ - 1 - (rollback_first_ ? 1U : 0U);
    if (!trusts_autocommit_) {
      context_.sql.read_marked(packet, names, mark_, 1);
      committed_at_ += 1;
    }
  }
  std::vector<core::Wake> revoked;
  std::copy_if(wakes.begin(), wakes.end(), std::back_inserter(revoked),
               [&](const core::Wake& wake) {
                 return wake.token == 0 && wake.session != context_.client.session;
               });
  if (!revoked.empty()) {
    context_.sql.note(packet, revoked);
  }
  // Rung even if the row turns out to have changed: a ring is only a hint.
  context_.doorbell.append_rings(packet, wakes, on_mariadb_);
  send(Step::write, std::move(packet));
}

void MysqlExchange::on_write() {
  const auto& replies = session_.replies();
  std::vector<std::string_view> written;
  if (in_transaction_) {
    const MysqlReply& marked = replies.at(committed_at_ - (trusts_autocommit_ ? 2 : 3));
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
    if (!trusts_autocommit_ && !is_proven(*draft.line, replies.at(committed_at_ - 1))) {
      continue;
    }
    settle_all(*draft.line, std::move(draft.outcomes));
    context_.doorbell.ring_ourselves(draft.wakes);
  }
  seen_.clear();
  seen_at_ = {};
}

}  // namespace holdfast::engines
