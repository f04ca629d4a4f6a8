#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::engine {

// Who shares a transaction with whom, for stores where several wishes cost
// little more than one. Those who come while a gate is open wait, and leave
// when any gate closes; with no gate open everybody leaves at once, alone.
// Nobody waits for longer than somebody else takes to come through a gate.
// Thread-safe.
template <typename Passenger>
class Boarding {
 public:
  // Performs what they want, on the thread of whoever closed the gate.
  using Depart = std::function<void(std::vector<Passenger>)>;

  Boarding(std::size_t seats, Depart depart) : seats_{seats}, depart_{std::move(depart)} {}

  // Open for as long as it lives.
  class Gate {
   public:
    explicit Gate(std::shared_ptr<Boarding> boarding) : boarding_{std::move(boarding)} {
      const std::lock_guard lock{boarding_->mutex_};
      ++boarding_->open_;
    }
    ~Gate() { boarding_->close(); }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

   private:
    std::shared_ptr<Boarding> boarding_;
  };

  // Passengers of one line never share a transaction; the empty line is none.
  void board(Passenger passenger, std::string line) {
    {
      const std::lock_guard lock{mutex_};
      if (open_ > 0) {
        waiting_.push_back({std::move(passenger), std::move(line)});
        return;
      }
    }
    std::vector<Passenger> alone;
    alone.push_back(std::move(passenger));
    depart_(std::move(alone));
  }

 private:
  struct Waiting {
    Passenger passenger;
    std::string line;
  };
  struct Car {
    std::vector<Passenger> passengers;
    std::vector<std::string> lines;
  };

  void close() {
    std::vector<Waiting> waiting;
    {
      const std::lock_guard lock{mutex_};
      --open_;
      waiting.swap(waiting_);
    }
    for (Car& car : seat(std::move(waiting))) {
      depart_(std::move(car.passengers));
    }
  }

  std::vector<Car> seat(std::vector<Waiting> waiting) const {
    std::vector<Car> cars;
    for (Waiting& each : waiting) {
      const auto has_room = [&](const Car& car) {
        return car.passengers.size() < seats_ &&
               (each.line.empty() || std::ranges::find(car.lines, each.line) == car.lines.end());
      };
      auto car = std::ranges::find_if(cars, has_room);
      if (car == cars.end()) {
        car = cars.insert(cars.end(), Car{});
      }
      car->passengers.push_back(std::move(each.passenger));
      if (!each.line.empty()) {
        car->lines.push_back(std::move(each.line));
      }
    }
    return cars;
  }

  const std::size_t seats_;
  const Depart depart_;
  std::mutex mutex_;
  std::size_t open_ = 0;
  std::vector<Waiting> waiting_;
};

}  // namespace holdfast::engine
