#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "engine/driver.h"

// GCC 12 complains of its own code at the end of every coroutine.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"

// Conversations written as coroutines: the steps of an exchange stand one below
// the other, and each co_await may continue on another thread.
namespace holdfast::engine {

// What all coroutines of one conversation share.
struct TalkState {
  Conversation::Wait wait;
  short ready = 0;
  bool given_up = false;
  std::coroutine_handle<> innermost;  // the one that waits
};

// A coroutine of a conversation. It starts when it is awaited by another, or
// run by a TalkConversation. Arguments passed by reference must outlive it.
template <typename T>
class [[nodiscard]] Talk {
 public:
  struct promise_type;  // NOLINT(readability-identifier-naming): the language's name
  using Handle = std::coroutine_handle<promise_type>;

  explicit Talk(Handle handle) noexcept : handle_{handle} {}
  Talk(Talk&& other) noexcept : handle_{std::exchange(other.handle_, nullptr)} {}
  Talk& operator=(Talk&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;
  ~Talk() {
    if (handle_) {
      handle_.destroy();
    }
  }

  void start(TalkState& state) {
    handle_.promise().state = &state;
    state.innermost = handle_;
  }
  bool done() const noexcept { return handle_.done(); }
  T take() { return *std::move(handle_.promise().value); }

  bool await_ready() const noexcept { return false; }
  template <typename Outer>
  Handle await_suspend(std::coroutine_handle<Outer> outer) noexcept {
    handle_.promise().state = outer.promise().state;
    handle_.promise().outer = outer;
    return handle_;
  }
  T await_resume() { return take(); }

 private:
  Handle handle_;
};

template <typename T>
struct Talk<T>::promise_type {  // NOLINT(readability-identifier-naming)
  struct Return {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle handle) const noexcept {
      return handle.promise().outer;
    }
    void await_resume() const noexcept {}
  };

  TalkState* state = nullptr;
  std::coroutine_handle<> outer = std::noop_coroutine();
  std::optional<T> value;

  Talk get_return_object() { return Talk{Handle::from_promise(*this)}; }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  Return final_suspend() const noexcept { return {}; }
  template <typename U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  void unhandled_exception() const noexcept { std::terminate(); }
};

// co_await Moment{{.fd = ..., .events = ..., .until = ...}}: what poll() found, 0 when the time
// came; nullopt if the conversation is to end.
class Moment {
 public:
  explicit Moment(Conversation::Wait wait) noexcept : wait_{wait} {}
  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    state_ = handle.promise().state;
    if (state_->given_up) {
      return false;
    }
    state_->wait = wait_;
    state_->innermost = handle;
    return true;
  }
  std::optional<short> await_resume() const noexcept {
    return state_->given_up ? std::nullopt : std::optional{state_->ready};
  }

 private:
  Conversation::Wait wait_;
  TalkState* state_ = nullptr;
};

// A conversation whose course is a coroutine. `ended` receives its value, may
// begin the next talk, and may destroy this object if nothing else does.
template <typename T>
class TalkConversation : public Conversation {
 public:
  void begin(Driver& driver, Talk<T> talk, Patience patience, std::function<void(T)> ended) {
    state_ = {};
    talk_.emplace(std::move(talk));
    ended_ = std::move(ended);
    talk_->start(state_);
    driver.run(*this, patience);
  }

  std::optional<Wait> advance(short ready) override {
    state_.ready = ready;
    std::exchange(state_.innermost, nullptr).resume();
    return talk_->done() ? std::nullopt : std::optional{state_.wait};
  }
  void give_up() override { state_.given_up = true; }
  void finish() override {
    T value = talk_->take();
    talk_.reset();
    std::exchange(ended_, nullptr)(std::move(value));
  }

 private:
  TalkState state_;
  std::optional<Talk<T>> talk_;
  std::function<void(T)> ended_;
};

}  // namespace holdfast::engine
