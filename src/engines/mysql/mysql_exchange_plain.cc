// What single conditional statements can do.
#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "engines/mysql/mysql_exchange.h"

namespace holdfast::engines {

using core::Status;

// What the window wants of a kind.
struct MysqlExchange::Wanted {
  std::vector<MysqlSql::Named> takes;
  std::vector<MysqlSql::Named> gives;
  std::vector<MysqlSql::Named> prolongs;
  bool others = false;  // lines that are not plain

  std::size_t kinds() const {
    return (takes.empty() ? 0U : 1U) + (gives.empty() ? 0U : 1U) + (prolongs.empty() ? 0U : 1U);
  }
  // One of a kind is answered by the number of rows it changed and its token.
  bool needs_read() const {
    return others || takes.size() > 1 || gives.size() > 1 || !prolongs.empty();
  }
};

MysqlExchange::Wanted MysqlExchange::collect() {
  Wanted wanted;
  for (Line& line : window_) {
    line.risked = line.is_plain();
    wanted.others = wanted.others || !line.is_plain();
    if (line.take != nullptr) {
      wanted.takes.push_back(
          {line.name, line.take->id, in_microseconds(line.take->ttl) + context_.options.max_skew});
    }
    if (line.give_back != nullptr) {
      wanted.gives.push_back({line.name, line.give_back->id});
    }
    if (line.prolong != nullptr) {
      wanted.prolongs.push_back({line.name, line.prolong->id});
    }
  }
  return wanted;
}

void MysqlExchange::send_plain() {
  const Wanted wanted = collect();
  if (wanted.kinds() == 0) {
    send_read();
    return;
  }
  mark_ = base::random_u64() | 1U;
  in_transaction_ = wanted.kinds() > 1 || wanted.gives.size() > 1;
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
  if (!wanted.gives.empty()) {
    context_.sql.give_back(packet, wanted.gives, mark_);
    add(Statement::give_back);
  }
  if (!wanted.takes.empty()) {
    context_.sql.take(packet, wanted.takes);
    add(Statement::take);
  }
  if (!wanted.prolongs.empty()) {
    context_.sql.prolong(packet, wanted.prolongs, mark_);
    add(Statement::prolong);
  }
  if (wanted.needs_read()) {
    context_.sql.read(packet, unsettled_names());
    add(Statement::read);
  } else if (wanted.takes.empty()) {
    // A release that others wait for: the sooner we know the queue, the better.
    context_.sql.read_if_unchanged(packet, window_.front().name);
    add(Statement::read_if_missed);
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
  if (const MysqlReply* rows = find(Statement::read_if_missed)) {
    take_rows(*rows);
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

}  // namespace holdfast::engines
