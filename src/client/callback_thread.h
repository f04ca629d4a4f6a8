#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace holdfast::client {

// Runs strangers' callbacks one after another, on a thread that does nothing
// else: a slow one delays no renewal. Starts with the first callback.
class CallbackThread {
 public:
  CallbackThread() = default;
  ~CallbackThread();  // finishes what was posted
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  void post(std::function<void()> callback);
  bool is_current() const noexcept;

 private:
  bool start();
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> callbacks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace holdfast::client
