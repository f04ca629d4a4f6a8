#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/driver.h"
#include "engines/mysql/mysql_errors.h"
#include "engines/mysql/mysql_next.h"
#include "engines/mysql/mysql_row.h"
#include "engines/mysql/mysql_session.h"
#include "engines/mysql/mysql_sql.h"
#include "engines/relational/known_names.h"

namespace holdfast::engines {

class MysqlDoorbell;

// What all parts of an engine share.
struct MysqlContext {
  const MysqlOptions& options;
  const engine::EngineOptions& client;
  const MysqlSql& sql;
  MysqlDoorbell& doorbell;
};

// One lane: a connection and the batch that is on its way there.
//
// First comes what single conditional statements can do, all of a kind in one
// statement. Whatever they did not match - a queue, shared locks, semaphores,
// looks - is read, run through the lock record here, and written back if
// nobody changed the row meanwhile. So no row stays locked between two
// packets, and what the record decides is what happens.
class MysqlExchange : public engine::Conversation {
 public:
  explicit MysqlExchange(const MysqlContext& context);

  void begin(std::span<const core::Command> batch, engine::Done done);

  std::optional<Wait> advance(short ready) override;
  void give_up() override { given_up_ = true; }
  void finish() override;

  void forget() noexcept { session_.forget(); }

 private:
  // The commands of one name.
  struct Line {
    std::string_view name;
    std::vector<std::size_t> commands;  // in order
    bool settled = false;
    bool risked = false;   // the packet on its way may change it
    bool guarded = false;  // a transaction of its last holder still relies on the fence
    bool doubted = false;  // a commit that was refused may have been carried out after all
    const core::Release* give_back = nullptr;
    const core::Acquire* take = nullptr;
    const core::Renew* prolong = nullptr;
    const core::Requeue* requeue = nullptr;
    bool is_plain() const {
      return give_back != nullptr || take != nullptr || prolong != nullptr || requeue != nullptr;
    }
  };
  // A row as read, with the lock in it.
  struct Seen {
    std::uint64_t version = 0;  // 0: there is no row
    std::uint64_t mark = 0;
    base::Time now{};
    LockRow row;
  };
  // A line on its way through the lock record.
  struct Draft {
    Line* line;
    std::uint64_t version;
    LockEntry entry;
    std::vector<core::Outcome> outcomes;
    std::vector<core::Wake> wakes;
    std::optional<std::uint64_t> fence = std::nullopt;  // to be raised to this
    mysql::Tokens next = mysql::Tokens::taken;          // of who is next
  };
  enum class Step : std::uint8_t { connect, survey, door, make_tables, plain, read, write, pause };
  // A statement's part in the plain packet: one wish of a line.
  struct Asked {
    Line* line;
    std::size_t command;
    MysqlSql::Wish::Kind kind;
    base::Duration ttl{};
    bool has_row = false;
  };
  enum class Answer : std::uint8_t { verdicts, bulk, rows, read, exchanged, requeued, passed_on };

  void sort_out(std::span<const core::Command> batch);
  void recognize_plain(Line& line) const;

  // Each sends a packet, or returns false if there is nothing left to do.
  bool start_window();
  void send_plain();
  void send_pass_on(const MysqlSql::Wish& give_back);
  void send_in_transaction(std::span<const MysqlSql::Wish> wishes);
  void send_requeue(Line& line);
  bool may_pass_on() const;
  std::vector<MysqlSql::Wish> make_wishes();
  void send_read();
  bool draft_and_write();
  void draft(Line& line);
  void apply_commands(Draft& draft, const core::LockRecord& before) const;
  void send_write();
  void send(Step step, std::string packet);
  bool look_again();

  bool on_reply();
  bool on_connected();
  bool on_survey();
  void on_plain();
  void on_bulk();
  void on_requeued(const MysqlReply& reply);
  void on_exchanged(const MysqlReply& reply);
  void on_passed_on();
  void fulfil(std::size_t wish, std::uint64_t token, base::Duration lease_for);
  bool is_exchange() const;
  void judge(std::size_t wish, const MysqlVerdict& verdict);
  void on_write();
  bool on_error(const MysqlError& error);
  bool reached_commit() const;
  bool after_collision();
  bool refused_bulk(const MysqlError& error);
  bool refused_to_ring(const MysqlError& error);
  bool met_a_guard(const MysqlError& error) const;
  bool pause_then_retry();

  void take_rows(const MysqlReply& reply);
  bool is_proven(Line& line, const MysqlReply& marked) const;
  void settle(std::size_t command, core::Outcome outcome);
  void settle_all(Line& line, std::vector<core::Outcome> outcomes);
  void fail_line(Line& line, Error error);
  void fail_unsettled(const Error& error);
  std::vector<std::string_view> unsettled_names() const;
  const Seen* seen(const Line& line) const;
  core::Operation adapted(const core::Operation& operation) const;

  MysqlContext context_;
  MysqlSession session_;
  bool on_mariadb_ = true;
  bool has_nowait_ = true;
  bool has_returning_ = false;
  bool has_bulk_ = false;           // prepared statements for many rows, with RETURNING
  bool trusts_autocommit_ = false;  // what a statement answers is what it committed

  // The batch.
  std::span<const core::Command> batch_;
  engine::Done done_;
  engine::Outcomes outcomes_;
  std::vector<Line> lines_;
  std::uint64_t looks_before_ = 0;
  base::Time deadline_{};
  bool given_up_ = false;

  // The part of it that is being worked on.
  std::span<Line> window_;
  std::size_t window_size_ = 0;  // at most
  int collisions_ = 0;
  unsigned troubles_ = 0;
  bool tables_made_ = false;

  // The packet on its way.
  Step step_ = Step::connect;
  base::Time resume_at_{};
  bool in_transaction_ = false;
  bool rollback_first_ = false;
  std::uint64_t mark_ = 0;
  std::vector<Asked> asked_;
  std::size_t replied_at_ = 0;  // where the replies to our own statements begin
  relational::KnownNames known_;
  std::string crowded_;                     // the name where others stood in the queue of late
  relational::NamesOfLate<64> waited_for_;  // names where somebody waited of late
  bool passes_on_ = true;
  bool passes_on_again_ = false;  // with the next batch
  Answer answer_ = Answer::verdicts;
  std::size_t committed_at_ = 0;  // replies beyond this are about doorbells
  std::size_t commits_at_ = 0;    // which of our statements is the COMMIT, in a transaction
  std::vector<std::pair<std::string, Seen>> seen_;
  base::Time seen_at_{};
  std::vector<Draft> drafts_;
};

}  // namespace holdfast::engines
