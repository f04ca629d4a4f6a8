#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/coordinator.h"
#include "core/lock_record.h"
#include "support/commands.h"

namespace holdfast::test {

// Somebody who waits for a lock, and then for the answer to its release.
class Caller : public client::GrantReceiver, public client::AnswerReceiver {
 public:
  void deliver(Result<std::shared_ptr<client::LeaseState>> result) override {
    grants.push_back(std::move(result));
  }
  void answer(Result<std::uint32_t> result) override { answers.push_back(std::move(result)); }

  bool waits() const { return grants.empty(); }
  bool holds() const { return grants.size() == 1 && grants[0].has_value(); }
  const client::LeaseState& lease() const { return **grants.at(0); }
  // The code it was turned away with; empty if it waits or holds.
  std::optional<ErrorCode> error() const {
    return waits() || holds() ? std::nullopt : std::optional{grants.at(0).error().code};
  }
  // Of the release, or of a question; empty if there is no answer yet.
  std::optional<Result<std::uint32_t>> answered() const {
    return answers.empty() ? std::nullopt : std::optional{answers.at(0)};
  }
  bool released() const { return answers.size() == 1 && answers[0].has_value(); }

  core::ClaimId claim = 0;
  std::vector<Result<std::shared_ptr<client::LeaseState>>> grants;
  std::vector<Result<std::uint32_t>> answers;
};

// A Coordinator, callers, and a store on the other side of the desk. The store
// keeps real lock records; what becomes of each batch is for the test to say.
class Desk : public ::testing::Test {
 protected:
  using Sent = std::vector<std::string>;  // "acquire x", "heartbeat x", ...

  Desk();
  void TearDown() override;

  // --- callers
  static client::Wish wish(std::string name = "x");
  std::shared_ptr<Caller> acquire(const client::Wish& wish);
  std::shared_ptr<Caller> acquire(std::string name = "x") { return acquire(wish(std::move(name))); }
  // Acquires, and everything that follows at the store.
  std::shared_ptr<Caller> hold(const client::Wish& wish);
  std::shared_ptr<Caller> hold(std::string name = "x") { return hold(wish(std::move(name))); }
  void release(const std::shared_ptr<Caller>& caller);
  bool cancel(const std::shared_ptr<Caller>& caller, ErrorCode why = ErrorCode::timed_out);
  void healthy(const std::shared_ptr<Caller>& caller, bool well);
  std::shared_ptr<Caller> ask(core::Operation operation, std::string name = "x");

  // --- the store
  Sent send();  // the next batch leaves; empty if there is none
  Sent sent() const;
  const std::vector<core::Command>& commands() const { return batch_; }
  void reply();                                          // applied and answered
  void reply_with(std::vector<core::Outcome> outcomes);  // not applied
  void reply_failed(ErrorCode code);                     // not applied
  void lose_reply();                                     // applied; outcome_unknown
  void apply();                                          // reply() tells
  Sent run();  // everything that is to be sent, answered, and so on
  core::Outcome other(core::Operation operation, std::string name = "x");  // another process
  void ring();  // what the store had to tell
  std::size_t lose_rings();
  const core::LockRecord& record(const std::string& name = "x") { return store_[name]; }

  // --- time
  void pass(core::Duration time);  // the store answers everything
  // The clock alone; with the callers' alarms, but nothing is sent.
  void pass_alone(core::Duration time);
  void tick();
  void look(bool store_changed = true);

  core::Time now = at(0s);
  client::Coordinator coordinator;
  std::vector<client::LeaseState*> losses;  // in order
  std::vector<core::ClaimId> questions;

 private:
  static client::Coordinator::Config config();
  void take_effects();
  engine::Outcomes apply_batch();
  void finish(const engine::Outcomes& outcomes);

  std::vector<core::Command> batch_;
  bool on_its_way_ = false;
  std::optional<engine::Outcomes> applied_;
  std::map<std::string, core::LockRecord> store_;
  std::vector<engine::Ring> rings_;
};

}  // namespace holdfast::test
