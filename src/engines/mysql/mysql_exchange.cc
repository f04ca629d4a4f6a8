#include "engines/mysql/mysql_exchange.h"

#include <algorithm>
#include <utility>

#include "engine/batch.h"
#include "engines/mysql/mysql_doorbell.h"
#include "engines/mysql/mysql_features.h"

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
  troubles_ = 0;
  tables_made_ = false;
  passes_on_ = passes_on_ || std::exchange(passes_on_again_, false);
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
  if (const auto* requeue = std::get_if<Requeue>(operation(0))) {
    // A renewal of what it gives back often comes too late.
    const auto* renew = line.commands.size() == 2 ? std::get_if<Renew>(operation(1)) : nullptr;
    const core::Operation next = requeue->next;
    const bool plain =
        plain_take(&next) != nullptr && requeue->id != requeue->next.id &&
        (line.commands.size() == 1 || (renew != nullptr && renew->id == requeue->id));
    line.requeue = plain ? requeue : nullptr;
  } else if (line.commands.size() == 1) {
    line.give_back = std::get_if<Release>(operation(0));
    line.prolong = std::get_if<Renew>(operation(0));
    line.take = plain_take(operation(0));
  } else if (line.commands.size() == 2) {
    const auto* release = std::get_if<Release>(operation(0));
    const auto* acquire = plain_take(operation(1));
    if (release != nullptr && acquire != nullptr && release->id != acquire->id) {
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
  const auto* upgrade = std::get_if<core::Upgrade>(&operation);
  const core::RequestId* id = acquire != nullptr   ? &acquire->id
                              : requeue != nullptr ? &requeue->next.id
                              : poll != nullptr    ? &poll->id
                              : upgrade != nullptr ? &upgrade->id
                                                   : nullptr;
  const auto awaited =
      upgrade != nullptr ? MysqlDoorbell::Awaits::upgrade : MysqlDoorbell::Awaits::lock;
  if (id != nullptr && outcome.status == Status::queued) {
    context_.doorbell.expect(*id, batch_[command].name, looks_before_, awaited);
    waited_for_.add(batch_[command].name);
  } else if (id != nullptr && outcome.status != Status::failed) {
    context_.doorbell.dismiss(*id, awaited);
  }
  if (const auto* release = std::get_if<Release>(&operation)) {
    context_.doorbell.dismiss(release->id);
  } else if (const auto* downgrade = std::get_if<core::Downgrade>(&operation)) {
    context_.doorbell.dismiss(downgrade->id);
  } else if (const auto* transfer = std::get_if<core::Transfer>(&operation)) {
    context_.doorbell.dismiss(transfer->id);
  }
  if (outcome.status == Status::granted) {
    context_.doorbell.hold();
  }
  if (outcome.lease_for > base::Duration::zero()) {
    outcome.lease_for = std::max(outcome.lease_for - context_.options.max_skew, base::Duration{1});
  }
  outcomes_[command] = std::move(outcome);
}

void MysqlExchange::fail_line(Line& line, Error error) {
  if (line.doubted) {
    error.code = ErrorCode::outcome_unknown;  // unavailable would say that nothing was done
  }
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
  constexpr unsigned kFirstOfTheClients = 2000;  // errors below it are the server's
  if (step_ == Step::door && session_.error() && session_.error()->code < kFirstOfTheClients) {
    return start_window();  // it has no such locks: the doorbell does without
  }
  const bool was_done =
      (step_ == Step::write && committed_at_ > 0 && session_.replies().size() >= committed_at_) ||
      (step_ == Step::plain && answer_ == Answer::passed_on &&
       session_.replies().size() > replied_at_ + commits_at_);
  if (session_.error() && !was_done) {
    return on_error(*session_.error());
  }
  for (Line& line : window_) {
    line.risked = false;
  }
  rollback_first_ = false;
  switch (step_) {
    case Step::connect:
      return on_connected();
    case Step::survey:
      return on_survey();
    case Step::door:
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

// A node of a Galera cluster whose commit is refused may repeat the statement by itself, after it
// has answered, or replay it and forget how many rows it changed. There only what is read inside
// a transaction counts, once that has been committed.
bool MysqlExchange::on_connected() {
  const MysqlFeatures features = MysqlFeatures::of(session_.server_version());
  on_mariadb_ = features.mariadb;
  has_nowait_ = features.nowait;
  has_returning_ = false;
  has_bulk_ = false;
  passes_on_ = true;
  trusts_autocommit_ = false;
  if (!context_.options.returning) {
    return start_window();
  }
  send(Step::survey, "SHOW VARIABLES LIKE 'wsrep_on'");
  return true;
}

bool MysqlExchange::on_survey() {
  const MysqlReply& wsrep = session_.replies().back();
  trusts_autocommit_ = wsrep.rows() == 0 || wsrep.cell(0, 1) != "ON";
  has_returning_ = trusts_autocommit_ && MysqlFeatures::of(session_.server_version()).returning;
  has_bulk_ = has_returning_ && session_.takes_bulk();
  if (!on_mariadb_ || !trusts_autocommit_ || !context_.options.doorbell) {
    return start_window();
  }
  std::string packet;
  context_.sql.shut_door(packet);
  send(Step::door, std::move(packet));
  return true;
}

void MysqlExchange::send(Step step, std::string packet) {
  step_ = step;
  replied_at_ = rollback_first_ ? 1 : 0;
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

}  // namespace holdfast::engines
