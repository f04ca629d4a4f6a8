// When something goes wrong: what may be tried again, and what is told.
#include <algorithm>
#include <array>
#include <utility>

#include "base/ids.h"
#include "engines/mysql/mysql_exchange.h"

namespace holdfast::engines {
namespace {

constexpr int kCollisionsTogether = 2;  // then one name at a time
constexpr base::Duration kShortPause = std::chrono::microseconds{200};
constexpr base::Duration kFirstPause = std::chrono::milliseconds{10};
constexpr base::Duration kLongestPause = std::chrono::milliseconds{500};

base::Duration jittered(base::Duration most) {
  const auto range = static_cast<std::uint64_t>(most.count());
  return base::Duration{static_cast<std::int64_t>(range / 2 + base::random_u64() % (range / 2))};
}

}  // namespace

// The packet's COMMIT was refused, or something after it was.
bool MysqlExchange::reached_commit() const {
  return in_transaction_ && session_.replies().size() >= replied_at_ + commits_at_;
}

bool MysqlExchange::on_error(const MysqlError& error) {
  seen_.clear();
  seen_at_ = {};
  for (Line& line : window_) {
    line.doubted = line.doubted || (line.risked && !trusts_autocommit_ && reached_commit());
  }
  if (refused_bulk(error) || refused_to_ring(error)) {
    return start_window();
  }
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
      if (met_a_guard(error)) {
        drafts_.front().line->guarded = true;
        drafts_.front().line->risked = false;
        rollback_first_ = true;
        return draft_and_write();
      }
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
      rollback_first_ = rollback_first_ || in_transaction_;
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
  ++troubles_;
  if (base::BootClock::now() >= deadline_) {
    fail_unsettled(as_error(error, context_.options));
    return false;
  }
  return pause_then_retry();
}

// Too many prepared statements, one that a pooler has lost, or a server that has no such thing:
// nothing was done, and text does as well.
bool MysqlExchange::refused_bulk(const MysqlError& error) {
  constexpr unsigned kUnknownCommand = 1047;  // a Galera node that is not ready is sent none
  constexpr unsigned kWrongArguments = 1210;
  constexpr unsigned kUnknownStatement = 1243;
  constexpr unsigned kNotAsPrepared = 1295;
  constexpr unsigned kTooManyStatements = 1461;
  constexpr unsigned kPrepareAgain = 1615;
  constexpr unsigned kMalformed = 1835;
  constexpr std::array kRefusals{kUnknownCommand, kWrongArguments,    kUnknownStatement,
                                 kNotAsPrepared,  kTooManyStatements, kPrepareAgain,
                                 kMalformed};
  const bool refused = std::find(kRefusals.begin(), kRefusals.end(), error.code) != kRefusals.end();
  if (step_ != Step::plain || answer_ != Answer::bulk || !refused) {
    return false;
  }
  has_bulk_ = false;
  return true;
}

// Whoever is next may be an account that we may not wake, or just have gone: nothing was done then.
bool MysqlExchange::refused_to_ring(const MysqlError& error) {
  if (step_ != Step::plain || answer_ != Answer::passed_on ||
      trouble_of(error) != MysqlTrouble::final) {
    return false;
  }
  constexpr unsigned kNoSuchThread = 1094;
  passes_on_ = false;
  passes_on_again_ = error.code == kNoSuchThread;
  rollback_first_ = true;
  return true;
}

// Somebody's transaction keeps the fence of the one name in this packet locked.
bool MysqlExchange::met_a_guard(const MysqlError& error) const {
  return step_ == Step::write && is_lock_wait(error) && drafts_.front().fence &&
         session_.replies().size() == (rollback_first_ ? 2U : 1U);
}

// A node of a cluster may repeat a transaction that it has called a victim already.
bool MysqlExchange::after_collision() {
  for (Line& line : window_) {
    line.doubted = line.doubted || (line.risked && !trusts_autocommit_);
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
  const bool collided = session_.is_connected() && troubles_ == 0;
  const base::Duration pause =
      collided ? kShortPause * std::max(collisions_, 1)
               : std::min(kFirstPause * (1U << std::min(troubles_, 8U)), kLongestPause);
  resume_at_ = base::BootClock::now() + jittered(pause);
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
