#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/driver.h"
#include "engines/mysql/mysql_options.h"
#include "engines/mysql/mysql_session_bulk.h"

struct st_mysql;
struct st_mysql_res;

namespace holdfast::engines {

struct MysqlError {
  unsigned code = 0;  // the server's or the client library's
  std::string text;
  // The connection is gone: what was sent may have been done or not.
  bool disconnected = false;
};

// What one statement gave.
class MysqlReply {
 public:
  using Cell = std::optional<std::string_view>;  // nullopt: NULL

  std::uint64_t affected = 0;
  std::uint64_t insert_id = 0;

  std::size_t rows() const noexcept { return rows_.size(); }
  Cell cell(std::size_t row, std::size_t column) const;

 private:
  friend class MysqlSession;
  struct Free {
    void operator()(st_mysql_res* result) const noexcept;
  };
  struct Row {
    char** cells;
    std::vector<unsigned long> lengths;
  };
  std::unique_ptr<st_mysql_res, Free> result_;
  std::vector<Row> rows_;
};

// One connection, never blocking: begin something, advance() until it is over,
// then look at error() and replies(). For one thread at a time.
class MysqlSession {
 public:
  explicit MysqlSession(const MysqlOptions& options) : options_{options} {}
  ~MysqlSession() { close(); }
  MysqlSession(const MysqlSession&) = delete;
  MysqlSession& operator=(const MysqlSession&) = delete;

  bool is_connected() const noexcept { return connected_; }
  // The server has hung up, or is about to: a statement sent now would fail.
  bool is_stale() const;

  void start_connect();
  // Several statements, separated by semicolons. They end at the first that
  // fails.
  void start_query(std::string packet, base::Duration timeout);

  // One statement for all of these rows, always the same one on a connection; only where
  // takes_bulk(). Gives answers() instead of replies().
  void start_bulk(std::string statement, std::vector<MysqlColumn> rows, base::Duration timeout);
  bool takes_bulk() const { return connected_ && MysqlBulk::is_known_to(mysql_); }

  // nullopt: what was begun is over.
  std::optional<engine::Conversation::Wait> advance(short ready);

  const std::optional<MysqlError>& error() const noexcept { return error_; }
  const std::vector<MysqlReply>& replies() const noexcept { return replies_; }
  const std::vector<MysqlBulk::Answer>& answers() const noexcept { return bulk_.answers(); }

  std::string server_version() const;

  void close() noexcept;   // says goodbye only if it can do so without waiting
  void forget() noexcept;  // after fork(): the parent's connection, left alone

 private:
  enum class Step : std::uint8_t { idle, connect, query, store, next, bulk };

  int take_step(int events);
  void finish_step();
  void take_reply();
  void start(Step step, base::Duration timeout);
  void fail(unsigned code, std::string text, bool disconnected);
  void fail_from_library();
  void fail_from(unsigned code, std::string text);

  const MysqlOptions& options_;
  st_mysql* mysql_ = nullptr;
  MysqlBulk bulk_;
  bool connected_ = false;

  Step step_ = Step::idle;
  bool entered_ = false;  // the library's *_start() was called
  int wanted_ = 0;        // what the library waits for
  base::Time until_{};
  std::string packet_;
  std::vector<MysqlReply> replies_;
  std::optional<MysqlError> error_;
  // Where the library puts its answers.
  st_mysql* connect_result_ = nullptr;
  st_mysql_res* store_result_ = nullptr;
  int code_result_ = 0;
};

}  // namespace holdfast::engines
