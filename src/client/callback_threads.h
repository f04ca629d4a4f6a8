#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::client {

// Runs strangers' callbacks on threads that do nothing else: a slow one delays
// no renewal, and no other callback as long as there are few of them. The
// first thread starts with the first callback.
class CallbackThreads {
 public:
  CallbackThreads() = default;
  ~CallbackThreads();  // finishes what was posted
  CallbackThreads(const CallbackThreads&) = delete;
  CallbackThreads& operator=(const CallbackThreads&) = delete;

  void post(std::function<void()> callback);
  bool is_current() const noexcept;

 private:
  bool start();
  void run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> callbacks_;
  std::size_t idle_ = 0;  // including threads that have just been started
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace holdfast::client
