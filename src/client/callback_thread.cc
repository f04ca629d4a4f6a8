#include "client/callback_thread.h"

#include <system_error>
#include <utility>

namespace holdfast::client {

CallbackThread::~CallbackThread() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void CallbackThread::post(std::function<void()> callback) {
  std::unique_lock lock{mutex_};
  callbacks_.push_back(std::move(callback));
  if (!thread_.joinable() && !start()) {
    const std::function<void()> here = std::move(callbacks_.back());
    callbacks_.pop_back();
    lock.unlock();
    here();  // no thread to be had: better on this one than never
    return;
  }
  lock.unlock();
  changed_.notify_one();
}

bool CallbackThread::start() {
  try {
    thread_ = std::thread{[this] { run(); }};
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

bool CallbackThread::is_current() const noexcept {
  const std::lock_guard lock{mutex_};
  return thread_.get_id() == std::this_thread::get_id();
}

void CallbackThread::run() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !callbacks_.empty(); });
    if (callbacks_.empty()) {
      return;
    }
    {
      const std::function<void()> callback = std::move(callbacks_.front());
      callbacks_.pop_front();
      lock.unlock();
      callback();
    }  // its captures end here too, outside the lock
    lock.lock();
  }
}

}  // namespace holdfast::client
