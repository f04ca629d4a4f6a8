// Q100, A32: many callers, none of them a thread.

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

// Callers that take a lock, let go at once, and take the next.
class Callers {
 public:
  // Each goes through these names, in turn; the first caller has the first of them.
  Callers(Client& client, std::vector<std::vector<std::string>> names)
      : client_{client},
        names_{std::move(names)},
        lined_up_(names_.size()),
        turns_(names_.size()),
        pending_{static_cast<std::uint32_t>(names_.size())} {
    for (std::size_t who = 0; who < names_.size(); ++who) {
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
  void line_up(std::size_t who) {
    lined_up_[who] = Clock::now();
    const std::string& name = names_[who][turns_[who]++ % names_[who].size()];
    client_.acquire_then(name, {.stop = stop_.get_token()},
                         [this, who](Result<Lease> result) { enter(who, std::move(result)); });
  }

  void enter(std::size_t who, Result<Lease> result) {
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
  const std::vector<std::vector<std::string>> names_;
  std::stop_source stop_;
  std::vector<Clock::time_point> lined_up_;
  std::vector<std::size_t> turns_;
  std::atomic<std::uint32_t> pending_;
  std::mutex mutex_;
  std::vector<double> waits_;
  std::optional<Error> trouble_;
};

// How long each waited of those who were let in, and for how long that was counted.
Result<std::vector<double>> measure(const Plan& plan, std::vector<std::vector<std::string>> names,
                                    double& elapsed) {
  auto client = Client::open(plan.url);
  if (!client) {
    return tl::unexpected{std::move(client.error())};
  }
  Callers callers{*client, std::move(names)};
  callers.begin();
  const Clock::time_point began = Clock::now();
  std::this_thread::sleep_for(plan.duration);
  std::vector<double> waits = callers.end();
  elapsed = seconds(Clock::now() - began);
  if (auto trouble = callers.finish()) {
    return tl::unexpected{*std::move(trouble)};
  }
  if (auto flushed = client->flush(); !flushed) {
    return tl::unexpected{std::move(flushed.error())};
  }
  return waits;
}

Result<Figures> figures_of(const Plan& plan, std::vector<std::vector<std::string>> names,
                           const char* field, const char* unit, const char* wait) {
  double elapsed = 0;
  auto waits = measure(plan, std::move(names), elapsed);
  if (!waits) {
    return tl::unexpected{std::move(waits.error())};
  }
  Figures figures{{field, unit, static_cast<double>(waits->size()) / elapsed}};
  for (Figure& figure : latencies(*std::move(waits), wait)) {
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace

Result<Figures> measure_queue(const Plan& plan, std::uint32_t usual_waiters) {
  const std::size_t waiters = plan.size.waiters.value_or(usual_waiters);
  return figures_of(plan, {waiters, {plan.prefix + "queue"}}, "hand_overs_per_s", "hand-overs/s",
                    "in line,");
}

Result<Figures> measure_callbacks(const Plan& plan, std::uint32_t usual_callers) {
  return figures_of(plan, names_of(plan, plan.size.threads.value_or(usual_callers)), "cycles_per_s",
                    "lock+unlock cycles/s", "a cycle,");
}

}  // namespace holdfast::command::bench
