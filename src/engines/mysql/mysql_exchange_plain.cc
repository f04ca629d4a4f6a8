// What single conditional statements can do.
#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "engines/mysql/mysql_exchange.h"

namespace holdfast::engines {

using core::Status;
using Kind = MysqlSql::Wish::Kind;

// Fills asked_, one a wish.
std::vector<MysqlSql::Wish> MysqlExchange::make_wishes() {
  std::vector<MysqlSql::Wish> wishes;
  asked_.clear();
  const auto add = [&](Line& line, std::size_t command, const core::RequestId& id, Kind kind,
                       base::Duration ttl = {}) {
    line.risked = true;
    const bool has_row = kind != Kind::take || known_.contains(line.name);
    asked_.push_back({&line, command, kind, ttl, has_row});
    wishes.push_back({line.name, id, kind, ttl, has_row});
  };
  for (Line& line : window_) {
    line.risked = false;
    // Without RETURNING one sees the row only after both.
    if (line.settled || (!has_returning_ && line.commands.size() > 1)) {
      continue;
    }
    if (line.give_back != nullptr) {
      add(line, line.commands.front(), line.give_back->id, Kind::give_back);
    }
    if (line.prolong != nullptr) {
      add(line, line.commands.front(), line.prolong->id, Kind::prolong);
    }
    if (line.take != nullptr) {
      add(line, line.commands.back(), line.take->id, Kind::take,
          in_microseconds(line.take->ttl) + context_.options.max_skew);
    }
  }
  return wishes;
}

void MysqlExchange::send_plain() {
  Line& only = window_.front();
  if (window_.size() == 1 && trusts_autocommit_ && only.requeue != nullptr &&
      only.name != crowded_) {
    send_requeue(only);
    return;
  }
  const auto wishes = make_wishes();
  if (wishes.empty()) {
    send_read();
    return;
  }
  mark_ = (base::random_u64() | 1U) << 12U;
  std::vector<std::string_view> others;
  for (const Line& line : window_) {
    if (!line.risked) {
      others.push_back(line.name);
    }
  }
  std::string packet;
  if (may_pass_on()) {
    send_pass_on(wishes.front());
    return;
  }
  in_transaction_ = !has_returning_;
  if (!has_returning_) {
    send_in_transaction(wishes);
    return;
  }
  if (others.empty() && is_exchange()) {
    const bool give_first = wishes.front().kind == Kind::give_back;
    context_.sql.exchange(packet, wishes[give_first ? 0 : 1], wishes[give_first ? 1 : 0]);
    answer_ = Answer::exchanged;
    send(Step::plain, std::move(packet));
    return;
  }
  if (has_bulk_ && wishes.size() > 1 && others.empty() && !rollback_first_) {
    step_ = Step::plain;
    answer_ = Answer::bulk;
    session_.start_bulk(context_.sql.prepared_ask(), context_.sql.rows_to_ask(wishes, mark_),
                        context_.options.timeout);
    return;
  }
  context_.sql.ask(packet, wishes, mark_);
  // A release that others wait for: the sooner we know the queue, the better.
  answer_ = wishes.size() == 1 && wishes.front().kind == Kind::give_back ? Answer::rows
                                                                         : Answer::verdicts;
  if (answer_ == Answer::rows) {
    context_.sql.answer_with_rows(packet);
  } else {
    MysqlSql::answer_with_verdicts(packet);
  }
  if (!others.empty()) {
    context_.sql.read(packet, others);
  }
  send(Step::plain, std::move(packet));
}

void MysqlExchange::send_pass_on(const MysqlSql::Wish& give_back) {
  answer_ = Answer::passed_on;
  in_transaction_ = true;
  std::string packet;
  commits_at_ = context_.sql.pass_on(packet, give_back, mark_, on_mariadb_);
  send(Step::plain, std::move(packet));
}

void MysqlExchange::send_in_transaction(std::span<const MysqlSql::Wish> wishes) {
  std::string packet = "START TRANSACTION";
  context_.sql.ask(packet, wishes, mark_);
  context_.sql.read(packet, unsettled_names());
  packet += ";COMMIT";
  commits_at_ = 3;
  if (!trusts_autocommit_) {
    context_.sql.read_marked(packet, unsettled_names(), mark_, wishes.size());
  }
  answer_ = Answer::read;
  send(Step::plain, std::move(packet));
}

// A release, where others wait now and then.
bool MysqlExchange::may_pass_on() const {
  return passes_on_ && trusts_autocommit_ && context_.options.doorbell && window_.size() == 1 &&
         asked_.size() == 1 && asked_.front().kind == Kind::give_back &&
         window_.front().commands.size() == 1 && waited_for_.contains(window_.front().name);
}

// Our own threads take turns, and nobody else waits.
void MysqlExchange::send_requeue(Line& line) {
  line.risked = true;
  in_transaction_ = false;
  answer_ = Answer::requeued;
  std::string packet;
  context_.sql.requeue(packet,
                       {line.name, line.requeue->next.id, Kind::take,
                        in_microseconds(line.requeue->next.ttl) + context_.options.max_skew},
                       line.requeue->id);
  send(Step::plain, std::move(packet));
}

void MysqlExchange::on_plain() {
  const auto& replies = session_.replies();
  const std::size_t first = replied_at_;
  if (answer_ == Answer::requeued) {
    on_requeued(replies.at(first));
    return;
  }
  if (answer_ == Answer::bulk) {
    on_bulk();
    return;
  }
  if (answer_ == Answer::exchanged) {
    on_exchanged(replies.at(first));
    return;
  }
  if (answer_ == Answer::passed_on) {
    on_passed_on();
    return;
  }
  if (answer_ == Answer::rows) {
    take_rows(replies.at(first));
  }
  bool proven = true;
  if (answer_ == Answer::read) {
    take_rows(replies.at(first + 2));
  } else if (replies.size() > first + 1) {
    take_rows(replies.at(first + 1));  // of the others
  }
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    if (answer_ == Answer::verdicts) {
      judge(i, read_verdict(replies.at(first), i));
    } else if (const Seen* row = seen(*asked_[i].line)) {
      const bool said = answer_ == Answer::read && row->mark == mark_ + i && !trusts_autocommit_;
      if (said && !is_proven(*asked_[i].line, replies.at(first + 4))) {
        proven = false;
      } else {
        judge(i, {row->version, row->mark, row->row.last_token, row->row.ttl});
      }
    }
  }
  if (!proven) {
    seen_.clear();
    seen_at_ = {};
  }
  if (answer_ == Answer::verdicts) {
    // What they did not match has not been read.
    const bool all_matched = std::all_of(asked_.begin(), asked_.end(),
                                         [](const Asked& each) { return each.line->settled; });
    if (!all_matched) {
      seen_.clear();
      seen_at_ = {};
    }
  }
}

void MysqlExchange::on_bulk() {
  const auto& answers = session_.answers();
  const bool complete = answers.size() == asked_.size();
  has_bulk_ = complete;
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    if (complete) {
      asked_[i].has_row = asked_[i].has_row && asked_[i].kind != Kind::take;  // it makes whole ones
      const auto& [version, mark, token, ttl] = answers[i];
      judge(i, {version, mark, token, std::chrono::microseconds{static_cast<std::int64_t>(ttl)}});
    } else {
      asked_[i].line->doubted = true;  // it did something, and did not say what
    }
  }
}

// A node of a Galera cluster may undo a transaction for another node's sake and call its COMMIT a
// success all the same: what a transaction said counts only if it is still there after it.
bool MysqlExchange::is_proven(Line& line, const MysqlReply& marked) const {
  for (std::size_t i = 0; i < marked.rows(); ++i) {
    if (marked.cell(i, 0) == line.name) {
      return true;
    }
  }
  line.doubted = true;
  return false;
}

// A thread that goes from one lock to the next.
bool MysqlExchange::is_exchange() const {
  if (asked_.size() != 2 || asked_[0].line == asked_[1].line) {
    return false;
  }
  const Asked& take = asked_[asked_[0].kind == Kind::take ? 0 : 1];
  const Asked& give = asked_[asked_[0].kind == Kind::take ? 1 : 0];
  return take.kind == Kind::take && give.kind == Kind::give_back &&
         known_.contains(take.line->name);
}

void MysqlExchange::on_exchanged(const MysqlReply& reply) {
  const bool took = reply.insert_id != 0;
  const bool gave = reply.affected == (took ? 2U : 1U);
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    if (asked_[i].kind == Kind::take ? took : gave) {
      fulfil(i, reply.insert_id, asked_[i].ttl);
    }
  }
}

void MysqlExchange::on_passed_on() {
  const auto& replies = session_.replies();
  if (replies.at(replied_at_ + 2).affected > 0) {
    fulfil(0, 0, {});
  } else if (!session_.error()) {
    take_rows(replies.back());
  }
}

void MysqlExchange::judge(std::size_t wish, const MysqlVerdict& verdict) {
  const Asked& asked = asked_[wish];
  const bool was_there = !asked.has_row || verdict.version > 1;
  if (verdict.mark == mark_ + wish && was_there) {
    fulfil(wish, verdict.last_token - (core::kTokenStride - 1),
           asked.kind == Kind::prolong ? verdict.ttl : asked.ttl);
  }
}

void MysqlExchange::fulfil(std::size_t wish, std::uint64_t token, base::Duration lease_for) {
  const auto& [line, command, kind, ttl, has_row] = asked_[wish];
  known_.add(line->name);
  switch (kind) {
    case Kind::give_back:
      settle(command, {.status = Status::released});
      line->give_back = nullptr;
      break;
    case Kind::take:
      settle(command, {.status = Status::granted, .token = token, .lease_for = lease_for});
      line->take = nullptr;
      break;
    case Kind::prolong:
      settle(command, {.status = Status::renewed, .token = token, .lease_for = lease_for});
      line->prolong = nullptr;
      break;
  }
  std::erase(line->commands, command);
  line->settled = line->commands.empty();
}

void MysqlExchange::on_requeued(const MysqlReply& reply) {
  Line& line = window_.front();
  if (reply.affected == 0) {
    return;
  }
  settle(line.commands.front(),
         {.status = Status::granted,
          .token = reply.insert_id,
          .lease_for = in_microseconds(line.requeue->next.ttl) + context_.options.max_skew,
          .gave_back = true});
  if (line.commands.size() > 1) {
    settle(line.commands.back(), {.status = Status::not_held});
  }
  line.commands.clear();
  line.settled = true;
}

}  // namespace holdfast::engines
