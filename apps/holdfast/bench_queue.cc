// Q100: many callers in line for one name, none of them a thread.

#include <atomic>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "bench.h"
#include "bench_workers.h"

namespace holdfast::command::bench {
namespace {

using namespace std::chrono_literals;

class Queue {
 public:
  Queue(Client& client, std::string name, std::uint32_t waiters)
      : client_{client}, name_{std::move(name)}, lined_up_(waiters), pending_{waiters} {
    for (std::uint32_t who = 0; who < waiters; ++who) {
      line_up(who);
    }
  }

  void begin() {
    const std::lock_guard lock{mutex_};
    waits_.clear();
  }

  // How long those waited who were let in since begin().
  std::vector<double> end() {
    const std::lock_guard lock{mutex_};
    return std::move(waits_);
  }

  // Nobody calls back afterwards.
  std::optional<Error> finish() {
    stop_.request_stop();
    sleep_until([&] { return pending_.load() == 0; });
    const std::lock_guard lock{mutex_};
    return trouble_;
  }

 private:
  void line_up(std::uint32_t who) {
    lined_up_[who] = Clock::now();
    client_.acquire_then(name_, {.stop = stop_.get_token()},
                         [this, who](Result<Lease> result) { enter(who, std::move(result)); });
  }

  void enter(std::uint32_t who, Result<Lease> result) {
    const auto waited = Clock::now() - lined_up_[who];
    {
      const std::lock_guard lock{mutex_};
      if (result) {
        waits_.push_back(std::chrono::duration<double, std::nano>{waited}.count());
      } else if (result.error().code != ErrorCode::cancelled) {
        trouble_ = std::move(result.error());
      }
    }
    const bool again = result.has_value() && !stop_.stop_requested();
    if (result) {
      result->release_in_background();
    }
    if (again) {
      line_up(who);
    } else {
      pending_.fetch_sub(1);
    }
  }

  Client& client_;
  const std::string name_;
  std::stop_source stop_;
  std::vector<Clock::time_point> lined_up_;
  std::atomic<std::uint32_t> pending_;
  std::mutex mutex_;
  std::vector<double> waits_;
  std::optional<Error> trouble_;
};

}  // namespace

Result<Figures> measure_queue(const Plan& plan, std::uint32_t usual_waiters) {
  auto client = Client::open(plan.url);
  if (!client) {
    return tl::unexpected{std::move(client.error())};
  }
  Queue queue{*client, plan.prefix + "queue", plan.size.waiters.value_or(usual_waiters)};
  queue.begin();
  const Clock::time_point began = Clock::now();
  std::this_thread::sleep_for(plan.duration);
  std::vector<double> waits = queue.end();
  const double elapsed = seconds(Clock::now() - began);
  if (auto trouble = queue.finish()) {
    return tl::unexpected{*std::move(trouble)};
  }
  if (auto flushed = client->flush(); !flushed) {
    return tl::unexpected{std::move(flushed.error())};
  }
  const auto count = static_cast<double>(waits.size());
  Figures figures{{"hand_overs_per_s", "hand-overs/s", count / elapsed}};
  for (Figure& figure : latencies(std::move(waits), "in line,")) {
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace holdfast::command::bench
