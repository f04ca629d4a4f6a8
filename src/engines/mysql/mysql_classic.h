#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/talk.h"
#include "engines/mysql/mysql_classic_sql.h"
#include "engines/mysql/mysql_line.h"
#include "engines/mysql/mysql_options.h"

namespace holdfast::engines {

// The locks that people build on MySQL by hand, with their known faults mended
// as far as their form allows: the server's clock decides, everything is
// checked against the owner, takeovers are conditional statements. No queue:
// who waits asks again, after a while that differs each time.
class MysqlClassic : public engine::Engine {
 public:
  static Capabilities row(const ClassicForm& form);

  MysqlClassic(const ClassicForm& form, MysqlOptions options, const engine::EngineOptions& client);
  ~MysqlClassic() override;

  const Capabilities& capabilities() const noexcept override { return row_; }
  void submit(std::size_t lane, std::span<const core::Command> batch, engine::Patience patience,
              engine::Done done) override;
  Result<std::vector<LockInfo>> list(std::string_view prefix) override;
  Result<LockInfo> show(std::string_view name) override;
  Result<void> init() override;
  Result<std::string> init_script() override;
  std::vector<Finding> doctor() override;

 private:
  // What this process asked for.
  struct Request {
    core::Acquire wish;
    bool held = false;
    std::string row = "0";  // the id of its row, where rows have one
  };
  // A lock's row.
  struct Seen {
    base::Duration left{};
    base::Duration held_for{};
    std::string owner;
    std::string row = "0";
  };

  bool inherited() const noexcept;

  engine::Talk<engine::Outcomes> run(std::span<const core::Command> batch);
  engine::Talk<core::Outcome> apply(const core::Command& command);
  engine::Talk<core::Outcome> take(std::string key, core::Acquire wish);
  engine::Talk<core::Outcome> renew(std::string key, core::RequestId id);
  engine::Talk<core::Outcome> release(std::string key, core::RequestId id);
  engine::Talk<core::Outcome> revoke(std::string key, core::Revoke how);
  engine::Talk<core::Outcome> requeue(std::string key, core::Requeue command);
  engine::Talk<core::Outcome> wait_in_table(std::string key, core::Acquire wish, Seen seen);
  core::Outcome judge(const core::Acquire& wish, const Seen& seen);

  engine::Talk<Result<std::vector<LockInfo>>> find(std::string prefix);
  template <typename T>
  T at_desk(const std::function<engine::Talk<T>()>& make);

  const ClassicForm& form_;
  const MysqlOptions options_;
  const ClassicSql sql_;
  const engine::EngineOptions client_;
  const Capabilities row_;
  const std::uint64_t generation_;
  MysqlLine session_;
  std::unordered_map<core::RequestId, Request> requests_;  // the lane's alone
  engine::TalkConversation<engine::Outcomes> lane_;
  std::mutex desk_mutex_;
  MysqlLine desk_;
  std::optional<engine::Driver> driver_{std::in_place};
};

}  // namespace holdfast::engines
