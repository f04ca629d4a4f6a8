#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/registry.h"
#include "engine/talk.h"
#include "engines/postgres/postgres_batch.h"
#include "engines/postgres/postgres_desk.h"
#include "engines/postgres/postgres_doorbell.h"
#include "engines/postgres/postgres_session.h"

namespace holdfast::engines {

// postgres://user@host/database: locks as rows of a table, at most three
// connections a client.
engine::Registration postgres_registration();
// The same under its other name, postgresql://.
engine::Registration postgresql_registration();

namespace postgres {

class LeaseEngine : public engine::Engine {
 public:
  static Result<std::unique_ptr<engine::Engine>> open(const Options& options,
                                                      const engine::EngineOptions& client);
  ~LeaseEngine() override;

  const Capabilities& capabilities() const noexcept override;
  void submit(std::size_t lane, std::span<const core::Command> batch, engine::Patience patience,
              engine::Done done) override;
  base::Duration ride() const noexcept override { return std::chrono::milliseconds{1}; }
  int doorbell_fd() const noexcept override { return doorbell_.fd(); }
  std::vector<engine::Ring> answer_doorbell() override;
  bool may_have_changed() override { return !inherited() && doorbell_.may_have_missed(); }
  void tidy() override;
  Result<std::string> fence_sql(std::string_view name, std::uint64_t token) override;
  Result<void> guard(std::string_view name, std::uint64_t token,
                     const engine::NativeConnection& connection, engine::AfterGuard after) override;
  Result<std::vector<LockInfo>> list(std::string_view prefix) override;
  Result<LockInfo> show(std::string_view name) override;
  Result<std::optional<core::Value>> load_value(std::string_view name) override;
  Result<core::ValueOutcome> write_value(const core::ValueWrite& write) override;
  Result<std::vector<core::NamedValue>> list_values(std::string_view prefix) override;
  Result<void> init() override;
  Result<std::string> init_script() override;
  std::vector<Finding> doctor() override;

 private:
  LeaseEngine(const Options& options, const engine::EngineOptions& client);

  bool inherited() const noexcept;
  engine::Talk<engine::Outcomes> run_batch(std::span<const core::Command> batch);
  void hear_for_holders(std::span<const core::Command> batch, const engine::Outcomes& outcomes);
  engine::Talk<bool> tidy_up();
  engine::Talk<Result<void>> make_fence(std::string key, std::uint64_t token);
  engine::Talk<Result<std::vector<LockInfo>>> find(std::string key,
                                                   std::optional<std::string> prefix);
  Call write_call(const core::ValueWrite& write) const;
  engine::Talk<Result<core::ValueOutcome>> put_value(const core::ValueWrite* write);
  engine::Talk<Result<std::vector<core::NamedValue>>> find_values(const std::string* sql,
                                                                  std::string key);
  engine::Talk<Result<void>> create();
  engine::Talk<std::vector<Finding>> examine();
  engine::Talk<bool> examine_schema(std::vector<Finding>& findings);

  const Shared shared_;
  const std::uint64_t generation_;
  Doorbell doorbell_;
  Session session_;  // the lane's
  relational::KnownNames known_;
  Desk desk_;
  // Grants that have their fence, by the first token of their block.
  std::mutex fences_mutex_;
  std::map<std::string, std::uint64_t> fences_;
  engine::TalkConversation<engine::Outcomes> lane_;
  std::optional<engine::Driver> driver_{std::in_place};  // ends before what it drives
};

}  // namespace postgres
}  // namespace holdfast::engines
