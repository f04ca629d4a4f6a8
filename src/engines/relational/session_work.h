#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/talk.h"
#include "engines/relational/session_locks.h"
#include "engines/relational/session_watch.h"

namespace holdfast::engines::relational {

// All that SessionLocks has, so that a forked child can leave it alone as one.
class SessionLocks::Work {
 public:
  Work(std::unique_ptr<SessionStore> store, Terms terms);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  const Terms& terms() const noexcept { return terms_; }
  SessionStore& store() noexcept { return *store_; }
  int bell_fd() const noexcept { return watch_.fd(); }
  std::vector<engine::Ring> answer();
  void begin(std::span<const core::Command> batch, engine::Patience patience, engine::Done done);

  // Asks at the desk, whose connection is not the lane's; waits for the answer.
  template <typename T>
  T at_desk(const std::function<engine::Talk<T>(Books&)>& ask) {
    const std::lock_guard one_at_a_time{desk_mutex_};
    std::mutex mutex;
    std::condition_variable answered;
    std::optional<T> value;
    engine::TalkConversation<T> conversation;
    conversation.begin(*driver_, ask(*desk_), engine::Patience::for_outcomes, [&](T result) {
      const std::lock_guard lock{mutex};
      value.emplace(std::move(result));
      answered.notify_all();
    });
    std::unique_lock lock{mutex};
    answered.wait(lock, [&] { return value.has_value(); });
    return *std::move(value);
  }

 private:
  struct Hold;
  using HoldPtr = std::shared_ptr<Hold>;
  using Got = LockSession::Got;

  engine::Talk<engine::Outcomes> run(std::span<const core::Command> batch);
  engine::Talk<bool> renew_all(std::span<const core::Command> batch, engine::Outcomes& outcomes);
  engine::Talk<core::Outcome> apply(const core::Command& command);
  engine::Talk<core::Outcome> acquire(std::string name, core::Acquire wish);
  engine::Talk<core::Outcome> take(HoldPtr hold);
  engine::Talk<core::Outcome> poll(std::string name, core::RequestId id);
  engine::Talk<core::Outcome> release(core::RequestId id);
  engine::Talk<core::Outcome> revoke(std::string name, core::Revoke how);

  engine::Talk<Result<Wanted>> know(Wanted wanted);
  engine::Talk<Result<Got>> try_lock(Hold& hold);
  engine::Talk<Result<Got>> wait_for(Hold& hold);
  void waited(const HoldPtr& hold, const Result<Got>& got);
  engine::Talk<bool> end_waiting(HoldPtr hold);
  engine::Talk<bool> interrupt_all(std::vector<Identity> sessions);
  engine::Talk<core::Outcome> standing(HoldPtr hold);

  engine::Talk<Result<std::unique_ptr<LockSession>>> take_session();
  void give_back(std::unique_ptr<LockSession> session);
  HoldPtr hold_of(const core::RequestId& id);
  void begin_holding(Hold& hold);  // with mutex_ held
  void end(const HoldPtr& hold);   // with mutex_ held: it is lost
  Books::Note note_of(const Hold& hold) const;

  const Terms terms_;
  const std::unique_ptr<SessionStore> store_;

  std::mutex mutex_;  // of the next four, and of the states of holds
  std::unordered_map<core::RequestId, HoldPtr> holds_;
  std::vector<core::RequestId> lost_;  // whose notes are to be struck
  std::atomic<std::size_t> sessions_{0};
  SessionWatch watch_;

  // The lane's alone.
  const std::unique_ptr<Books> books_;
  std::vector<std::unique_ptr<LockSession>> idle_;
  std::map<std::string, std::int64_t> known_;                 // keys and their hashes
  std::unordered_map<core::RequestId, core::Acquire> aside_;  // wait for revoked readers to go
  engine::TalkConversation<engine::Outcomes> lane_;

  std::mutex desk_mutex_;
  const std::unique_ptr<Books> desk_;
  engine::TalkConversation<bool> farewell_;
  std::optional<engine::Driver> driver_{std::in_place};  // ends before what it drives
};

}  // namespace holdfast::engines::relational
