#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/lock_record.h"
#include "engines/mysql/mysql_lock.h"
#include "engines/mysql/mysql_options.h"
#include "engines/mysql/mysql_session_bulk.h"
#include "engines/mysql/mysql_text.h"

namespace holdfast::engines {

// The statements of the lease strategy. Pure: text in, text out. All of them
// are appended to a packet, separated by semicolons.
class MysqlSql {
 public:
  MysqlSql(const MysqlOptions& options, const Party& party, const core::SessionId& session);

  // Tests only: the store's time, in place of the server's.
  void set_now(std::function<base::Time()> now) { now_ = std::move(now); }

  struct Wish {
    enum class Kind : std::uint8_t { take, give_back, prolong };
    std::string_view name;
    core::RequestId request;
    Kind kind = Kind::take;
    core::Duration ttl{};  // to take
    bool has_row = false;  // most likely; if not, nothing is taken
  };
  // Takes the locks that are plainly free, creating their rows if need be; ends
  // or prolongs the grants that stand plainly. The row of each wish that came
  // true carries the mark plus the wish's index. Affects 1 a new row, 2 a
  // changed one.
  void ask(std::string& packet, std::span<const Wish> wishes, std::uint64_t mark) const;
  // The same as one statement that is parsed once, and its rows; answers with verdicts.
  std::string prepared_ask() const;
  std::vector<MysqlColumn> rows_to_ask(std::span<const Wish> wishes, std::uint64_t mark) const;
  // To the first: the row as it is after each wish, as read() has it.
  void answer_with_rows(std::string& packet) const;
  // No more than tells what came true; read_verdict() understands it.
  static void answer_with_verdicts(std::string& packet);
  // Takes a lock whose row there is and gives another one back, in one cheaper
  // statement. Affects 1 each; there is an insert id, the token, if it took.
  void exchange(std::string& packet, const Wish& give_back, const Wish& take) const;
  // Ends a grant that stands plainly and takes the lock again. Affects 1; the
  // token is the insert id.
  void requeue(std::string& packet, const Wish& next, const core::RequestId& held) const;
  // A transaction that gives the lock back, to the next in line if the row says who that is
  // (mysql_next.h), and wakes it before this is written to the disk. The third
  // statement affects 1; otherwise the last one reads the row. Returns which of them commits.
  std::size_t pass_on(std::string& packet, const Wish& give_back, std::uint64_t mark,
                      bool on_mariadb) const;

  // All about these locks, and the time; read_row() understands it.
  void read(std::string& packet, std::span<const std::string_view> names) const;
  // No more than the rows.
  void read_rows(std::string& packet, std::span<const std::string_view> names) const;
  // One, once whoever is changing it is done.
  void read_settled(std::string& packet, std::string_view name) const;
  // The locks in use whose name starts with it, in order, after a name.
  void read_used(std::string& packet, std::string_view prefix, std::string_view after,
                 std::size_t at_most) const;

  struct Change {
    std::string_view name;
    std::uint64_t version = 0;  // as it was read; 0: there was no row
    LockRow row;
  };
  // Writes rows that nobody else changed meanwhile. Affects 1 each; marks them.
  void update(std::string& packet, std::span<const Change> changes, std::uint64_t mark) const;
  void insert(std::string& packet, std::span<const Change> changes, std::uint64_t mark) const;
  // Which of them carry the mark, or one of so many that follow it.
  void read_marked(std::string& packet, std::span<const std::string_view> names, std::uint64_t mark,
                   std::size_t marks) const;

  // The fence of a name, whose token follows the holder's. It may only be
  // raised if no transaction relies on it: locked() fails at once if one does.
  void lock_fence(std::string& packet, std::string_view name, bool can_refuse_to_wait) const;
  // Both only if the row carries the mark.
  void raise_fence(std::string& packet, std::string_view name, std::uint64_t token,
                   std::uint64_t mark) const;
  void make_fence(std::string& packet, std::string_view name, std::uint64_t token,
                  std::uint64_t mark) const;
  // Once there is no row.
  void forget_fence(std::string& packet, std::string_view name) const;

  // Forgets a row that was not touched since and is safe to forget.
  void forget(std::string& packet, std::string_view name, std::uint64_t version) const;
  // Names that may be forgotten, in order, after this one.
  void read_idle(std::string& packet, std::string_view after, std::size_t at_most) const;

  // A doorbell's statements must be one: if a KILL QUERY falls between two of a packet, the
  // server promises another answer and never gives it. MySQL knows no such block; there a
  // doorbell that hears nothing connects anew.
  static void as_one(std::string& packet, bool on_mariadb);
  // Makes this connection the one that wake() finds; an older one of this session, which
  // nobody uses any more, is ended.
  void hang(std::string& packet, bool on_mariadb) const;
  // Sleeps, unless one of the rows has changed since it was read, or there are notes.
  struct Known {
    std::string_view name;
    std::uint64_t version = 0;
  };
  enum class Couch : std::uint8_t { sleep, door };  // SLEEP(), or before the door
  void sleep(std::string& packet, std::chrono::seconds time, std::span<const Known> known,
             Couch couch) const;
  // For a connection that stays; it does not matter which of several has it.
  void shut_door(std::string& packet) const;
  // Wakes that session from its sleep.
  static void wake(std::string& packet, const core::SessionId& session, bool on_mariadb);

  // Notes tell a session which requests to look after that it does not wait
  // for: revoked ones.
  void note(std::string& packet, std::span<const core::Wake> wakes) const;
  void read_notes(std::string& packet) const;
  void drop_notes(std::string& packet) const;
  void drop_old_notes(std::string& packet) const;

  // What makes the tables; safe to run again.
  std::vector<std::string> schema() const;

 private:
  std::string now() const;
  std::string microseconds() const;
  void add_columns(std::string& packet) const;
  // Which connection is the doorbell of the session in that column; NULL: none.
  static std::string bell_in_use(const std::string& session);
  // At @holdfast_bell, in so many statements.
  static std::size_t ring(std::string& packet, bool on_mariadb);
  void select(std::string& packet) const;

  std::string table_;
  std::string notes_;
  std::string fences_;
  std::string schema_table_;
  core::SessionId session_;
  Party party_;
  // Who we are, as every statement says it.
  struct Us {
    std::string session;
    std::string label;
    std::string host;
    std::string pid;
  };
  Us us_;
  std::function<base::Time()> now_;
  core::Duration keep_idle_;
};

inline constexpr int kMysqlSchemaVersion = 1;

}  // namespace holdfast::engines
