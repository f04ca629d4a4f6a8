#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/talk.h"
#include "engines/postgres/postgres_session.h"

namespace holdfast::engines::postgres {

// A connection for questions beside the lanes: one at a time, asked on the
// caller's thread. Thread-safe.
class Desk {
 public:
  explicit Desk(const Options& options) : session_{options} {}

  Session& session() noexcept { return session_; }

  // Runs what `make` begins, and waits for its value.
  template <typename T>
  T run(engine::Driver& driver, const std::function<engine::Talk<T>()>& make) {
    std::unique_lock lock{mutex_};
    free_.wait(lock, [&] { return !taken_; });
    taken_ = true;
    lock.unlock();
    std::optional<T> value;
    engine::TalkConversation<T> conversation;
    conversation.begin(driver, make(), engine::Patience::for_outcomes, [&](T result) {
      const std::lock_guard answered{mutex_};
      value.emplace(std::move(result));
      free_.notify_all();
    });
    lock.lock();
    free_.wait(lock, [&] { return value.has_value(); });
    taken_ = false;
    free_.notify_all();
    return *std::move(value);
  }

  // Begins it unless the desk is taken, and does not wait.
  void run_in_background(engine::Driver& driver, const std::function<engine::Talk<bool>()>& make) {
    {
      const std::lock_guard lock{mutex_};
      if (taken_) {
        return;
      }
      taken_ = true;
    }
    background_.begin(driver, make(), engine::Patience::none, [this](bool) {
      const std::lock_guard lock{mutex_};
      taken_ = false;
      free_.notify_all();
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  bool taken_ = false;
  Session session_;
  engine::TalkConversation<bool> background_;
};

}  // namespace holdfast::engines::postgres
