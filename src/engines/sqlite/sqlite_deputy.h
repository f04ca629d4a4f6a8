#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace holdfast::engines {

// Does, on a thread of its own, what a caller has no time for. The thread
// starts with the first task. Thread-safe.
class SqliteDeputy {
 public:
  SqliteDeputy();
  ~SqliteDeputy();  // finishes what it took over; may run on the deputy itself
  SqliteDeputy(const SqliteDeputy&) = delete;
  SqliteDeputy& operator=(const SqliteDeputy&) = delete;

  void take_over(std::function<void()> task);

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state);

  const std::uint64_t generation_;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::engines
