#pragma once

#include <holdfast/error.h>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/talk.h"
#include "engines/mysql/mysql_errors.h"
#include "engines/mysql/mysql_session.h"

namespace holdfast::engines {

// A connection whose exchanges are coroutines. Used by one at a time.
class MysqlLine {
 public:
  // May what was sent be sent again if its answer is lost?
  enum class Repeat : std::uint8_t { harmless, no };

  // `create` gives the statements that make missing tables; nullptr: nobody makes them.
  explicit MysqlLine(const MysqlOptions& options, std::function<std::string()> create = nullptr)
      : options_{options}, create_{std::move(create)}, session_{options} {}

  // As far as one can tell without asking.
  bool is_open() const { return !session_.is_stale(); }
  int fd() const noexcept { return fd_; }
  void close() noexcept { session_.close(); }
  void forget() noexcept { session_.forget(); }

  engine::Talk<Result<void>> connect();
  // Several statements, which end at the first that fails: `outcome_unknown`
  // where the answer did not come. What the server said is in trouble().
  engine::Talk<Result<void>> ask(std::string packet, base::Duration timeout);
  // Connects if need be, makes missing tables, and tries again what may pass,
  // for as long as the options' time-out says.
  engine::Talk<Result<void>> insist(std::string packet, Repeat repeat);

  const std::optional<MysqlError>& trouble() const noexcept { return session_.error(); }
  const MysqlReply& last() const { return session_.replies().back(); }
  const std::vector<MysqlReply>& replies() const { return session_.replies(); }
  std::string server_version() const { return session_.server_version(); }

 private:
  engine::Talk<bool> drive();  // false: to be given up

  const MysqlOptions& options_;
  const std::function<std::string()> create_;
  MysqlSession session_;
  int fd_ = -1;
};

}  // namespace holdfast::engines
