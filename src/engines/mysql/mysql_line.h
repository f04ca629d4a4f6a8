#pragma once

#include <holdfast/error.h>
#include <optional>
#include <string>

#include "engine/talk.h"
#include "engines/mysql/mysql_errors.h"
#include "engines/mysql/mysql_session.h"

namespace holdfast::engines {

// A connection whose exchanges are coroutines. Used by one at a time.
class MysqlLine {
 public:
  explicit MysqlLine(const MysqlOptions& options) : options_{options}, session_{options} {}

  // As far as one can tell without asking.
  bool is_open() const { return !session_.is_stale(); }
  int fd() const noexcept { return fd_; }
  void close() noexcept { session_.close(); }

  engine::Talk<Result<void>> connect();
  // Several statements, which end at the first that fails: `outcome_unknown`
  // where the answer did not come. What the server said is in trouble().
  engine::Talk<Result<void>> ask(std::string packet, base::Duration timeout);

  const std::optional<MysqlError>& trouble() const noexcept { return session_.error(); }
  const MysqlReply& last() const { return session_.replies().back(); }
  const std::vector<MysqlReply>& replies() const { return session_.replies(); }
  std::string server_version() const { return session_.server_version(); }

 private:
  engine::Talk<bool> drive();  // false: to be given up

  const MysqlOptions& options_;
  MysqlSession session_;
  int fd_ = -1;
};

}  // namespace holdfast::engines
