#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

// Coroutines for engines whose commands take several round trips: written as
// one function, a recipe reads like the recipe. Whatever completes the
// awaited request resumes the coroutine on its thread.
namespace holdfast::engine {

// Runs at once and ends by itself; nobody waits for it.
struct Detached {
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
  };
};

// Runs when it is awaited, once, and gives its value to whoever awaits it.
template <typename T>
class [[nodiscard]] Task {
 public:
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    std::optional<T> value;
    std::coroutine_handle<> waiter;

    Task get_return_object() noexcept {
      return Task{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Resume {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
          return done.promise().waiter;
        }
        void await_resume() noexcept {}
      };
      return Resume{};
    }
    void return_value(T result) { value.emplace(std::move(result)); }
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
  };

  Task(Task&& other) noexcept : handle_{std::exchange(other.handle_, nullptr)} {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) {
      handle_.destroy();
    }
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
    handle_.promise().waiter = waiter;
    return handle_;
  }
  T await_resume() { return *std::move(handle_.promise().value); }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_{handle} {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace holdfast::engine
