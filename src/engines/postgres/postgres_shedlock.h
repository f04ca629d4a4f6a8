#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/talk.h"
#include "engines/postgres/postgres_desk.h"
#include "engines/postgres/postgres_session.h"

namespace holdfast::engines::postgres {

struct ShedlockSql {
  explicit ShedlockSql(const Options& options);

  std::string create;
  std::string take;
  std::string renew;
  std::string release;
  std::string look;
  std::string revoke;
  std::string free_now;
  std::string note_waiter;
  std::string forget_waiter;
  std::string list;
  std::string waiters;
};

// strategy=shedlock: the table of Java's ShedLock, with which it excludes. No
// queue, no token: who waits asks again, after a while that differs each time.
class ShedlockEngine : public engine::Engine {
 public:
  static Capabilities row();
  static Result<std::unique_ptr<engine::Engine>> open(const Options& options,
                                                      const engine::EngineOptions& client);

  const Capabilities& capabilities() const noexcept override { return row_; }
  void submit(std::size_t lane, std::span<const core::Command> batch, engine::Patience patience,
              engine::Done done) override;
  Result<std::vector<LockInfo>> list(std::string_view prefix) override;
  Result<LockInfo> show(std::string_view name) override;
  Result<void> init() override;
  Result<std::string> init_script() override;
  std::vector<Finding> doctor() override;

 private:
  // What this process asked for, and whether it has it.
  struct Request {
    std::string key;
    core::Acquire wish;
    bool held = false;
  };

  ShedlockEngine(const Options& options, const engine::EngineOptions& client);

  bool inherited() const noexcept;
  Bytes test_time() const;
  std::string locked_by(const core::RequestId& id) const;

  engine::Talk<engine::Outcomes> run(std::span<const core::Command> batch);
  engine::Talk<core::Outcome> apply(const core::Command& command);
  engine::Talk<core::Outcome> take(std::string key, core::Acquire wish);
  engine::Talk<core::Outcome> renew(std::string key, core::RequestId id);
  engine::Talk<core::Outcome> release(std::string key, core::RequestId id);
  engine::Talk<core::Outcome> revoke(std::string key, core::Revoke how);
  engine::Talk<core::Outcome> wait_in_table(std::string key, core::Acquire wish,
                                            core::Outcome outcome);
  engine::Talk<bool> forget_waiter(core::RequestId id);
  engine::Talk<Result<std::vector<LockInfo>>> find(std::string prefix, bool whole);
  engine::Talk<Result<void>> create();
  Call call(const std::string& sql, const std::string& key) const;

  const Options options_;
  const ShedlockSql sql_;
  const engine::EngineOptions client_;
  const Capabilities row_ = row();
  const std::uint64_t generation_;
  Session session_;
  Desk desk_;
  std::unordered_map<core::RequestId, Request> requests_;  // the lane's alone
  engine::TalkConversation<engine::Outcomes> lane_;
  std::optional<engine::Driver> driver_{std::in_place};
};

}  // namespace holdfast::engines::postgres
