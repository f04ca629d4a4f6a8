#include "client/callback_threads.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace holdfast::client {
namespace {

// More slow callbacks than this at once wait for each other.
constexpr std::size_t kMostThreads = 16;

}  // namespace

CallbackThreads::~CallbackThreads() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    threads = std::move(threads_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void CallbackThreads::post(std::function<void()> callback) {
  std::unique_lock lock{mutex_};
  callbacks_.push_back(std::move(callback));
  if (callbacks_.size() > idle_ && threads_.size() < kMostThreads && !start() && threads_.empty()) {
    const std::function<void()> here = std::move(callbacks_.back());
    callbacks_.pop_back();
    lock.unlock();
    here();  // no thread to be had: better on this one than never
    return;
  }
  lock.unlock();
  changed_.notify_one();
}

bool CallbackThreads::start() {
  if (stopping_) {
    return true;  // the threads that are there finish the rest
  }
  try {
    threads_.emplace_back([this] { run(); });
    ++idle_;
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

bool CallbackThreads::is_current() const noexcept {
  const std::lock_guard lock{mutex_};
  return std::ranges::any_of(threads_, [](const std::thread& thread) {
    return thread.get_id() == std::this_thread::get_id();
  });
}

void CallbackThreads::run() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !callbacks_.empty(); });
    if (callbacks_.empty()) {
      return;
    }
    --idle_;
    {
      const std::function<void()> callback = std::move(callbacks_.front());
      callbacks_.pop_front();
      lock.unlock();
      callback();
    }  // its captures end here too, outside the lock
    lock.lock();
    ++idle_;
  }
}

}  // namespace holdfast::client
