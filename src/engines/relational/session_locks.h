#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engines/relational/lock_session.h"

namespace holdfast::engines::relational {

// The database's own locks: the session is the lease. A lock that is held or
// awaited takes a connection, and is free when that ends; the server keeps the
// queue and wakes the next. What the server does not know, a ttl, is kept here:
// a hold that nobody renews is ended by closing its connection.
class SessionLocks : public engine::Engine {
 public:
  struct Terms {
    Capabilities capabilities;
    std::size_t max_sessions = 16;
    base::Duration timeout{};  // of a round trip
  };

  // Connects: what is wrong with the address or the server is told at once.
  static Result<std::unique_ptr<engine::Engine>> open(std::unique_ptr<SessionStore> store,
                                                      Terms terms);
  ~SessionLocks() override;

  const Capabilities& capabilities() const noexcept override;
  void submit(std::size_t lane, std::span<const core::Command> batch, engine::Patience patience,
              engine::Done done) override;
  int doorbell_fd() const noexcept override;
  std::vector<engine::Ring> answer_doorbell() override;
  bool may_have_changed() override { return false; }  // the bell is in this process
  void tidy() override;
  Result<std::vector<LockInfo>> list(std::string_view prefix) override;
  Result<LockInfo> show(std::string_view name) override;
  Result<void> init() override;
  Result<std::string> init_script() override;
  std::vector<Finding> doctor() override;

 private:
  class Work;

  SessionLocks(std::unique_ptr<SessionStore> store, Terms terms);
  bool inherited() const noexcept;

  const std::uint64_t generation_;
  std::unique_ptr<Work> work_;
};

}  // namespace holdfast::engines::relational
