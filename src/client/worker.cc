#include <holdfast/worker.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/time.h"
#include "client/absence.h"
#include "client/mailbox.h"
#include "client/service.h"
#include "client/wish.h"

namespace holdfast {
namespace {

[[noreturn]] void refuse(std::string text) {
  throw LockError{{ErrorCode::invalid_argument, std::move(text), std::nullopt}};
}

}  // namespace

class Worker::Impl {
 public:
  Impl(std::shared_ptr<client::Service> service, std::string name, Work work, WorkerOptions options)
      : service_{std::move(service)},
        name_{std::move(name)},
        work_{std::move(work)},
        options_{std::move(options)} {
    options_.lock.wait.reset();
    options_.lock.owner.reset();
    options_.lock.stop = stop_.get_token();
    check();
    thread_ = std::thread{[this] { run(); }};
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    stop_.request_stop();
    join();
  }

  bool is_ours() const noexcept { return service_->is_ours(); }

  bool leads() const noexcept {
    const std::lock_guard lock{mutex_};
    return lease_ != nullptr && lease_->is_alive() && !lease_->loss();
  }

  void resign() noexcept {
    std::stop_source term{std::nostopstate};
    {
      const std::lock_guard lock{mutex_};
      term = term_;
    }
    term.request_stop();
  }

  void stop() noexcept { stop_.request_stop(); }

  void join() {
    const std::lock_guard lock{joining_};
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  Result<std::optional<HolderInfo>> observe() {
    auto info =
        service_->engine().and_then([&](engine::Engine* engine) { return engine->show(name_); });
    if (!info) {
      return tl::unexpected{std::move(info.error())};
    }
    if (info->holders.empty()) {
      note_look(std::nullopt);
      return std::nullopt;
    }
    Duration longest{};  // several lead, by permits
    for (const HolderInfo& holder : info->holders) {
      longest = std::max(longest, holder.held_for);
    }
    note_look(longest);
    return std::optional{std::move(info->holders.front())};
  }

  WorkerStatistics statistics() const {
    const std::lock_guard lock{mutex_};
    WorkerStatistics all = statistics_;
    all.without_leader = absence_.total();
    all.unknown = absence_.unknown();
    if (lease_ != nullptr) {
      all.led += base::BootClock::now() - led_since_;
    }
    return all;
  }

  std::optional<Error> last_error() const {
    const std::lock_guard lock{mutex_};
    return last_error_;
  }

 private:
  // While we lead ourselves we know better.
  void note_look(std::optional<Duration> led_for) {
    const std::lock_guard lock{mutex_};
    const base::Time now = base::BootClock::now();
    if (lease_ != nullptr || letting_go_) {
      return;
    }
    if (led_for) {
      absence_.saw_leader(now - *led_for, now);
    } else {
      absence_.saw_nobody(now);
    }
  }

  void check() const {
    if (!work_) {
      refuse("work is empty; give the function that the leader runs");
    }
    if (options_.rest < Duration::zero()) {
      refuse("rest is negative; use zero to stand again at once");
    }
    if (options_.look_every && *options_.look_every <= Duration::zero()) {
      refuse("look_every must be longer than zero; leave it empty for every ttl");
    }
    if (options_.lock.mode == Mode::shared) {
      refuse("mode = shared would let every process lead; use exclusive or permits");
    }
    if (auto wish = client::make_wish(name_, options_.lock, service_->capabilities()); !wish) {
      throw LockError{std::move(wish.error())};
    }
  }

  void run() {
    while (!stop_.stop_requested()) {
      auto lease = stand();
      if (lease) {
        lead(std::move(*lease));
      } else if (lease.error().code != ErrorCode::cancelled) {
        const std::lock_guard lock{mutex_};
        ++statistics_.errors;
        last_error_ = std::move(lease.error());
      }
      rest();
    }
  }

  // Waits for the lock, and looks now and then who has it.
  Result<Lease> stand() {
    const auto box = std::make_shared<client::Mailbox<Result<Lease>>>();
    service_->acquire_then(name_, options_.lock,
                           [box](Result<Lease> result) { box->put(std::move(result)); });
    const Duration every =
        std::min(options_.look_every.value_or(options_.lock.ttl), client::kLongestWait);
    while (true) {
      if (auto result = box->take_until(base::BootClock::now() + every)) {
        return std::move(*result);
      }
      static_cast<void>(observe());
    }
  }

  void lead(Lease lease) {
    std::stop_source term = begin(lease);
    {
      const std::stop_callback when_lost{lease.lost(), [&term] { term.request_stop(); }};
      const std::stop_callback when_stopped{stop_.get_token(), [&term] { term.request_stop(); }};
      try {
        work_(term.get_token(), lease.token());
      } catch (const std::exception& error) {
        note_failure(error.what());
      } catch (...) {
        note_failure("an exception");
      }
    }
    end(lease);
  }

  void note_failure(const char* what) {
    const std::lock_guard lock{mutex_};
    ++statistics_.failures;
    statistics_.last_failure = what;
  }

  std::stop_source begin(const Lease& lease) {
    const std::lock_guard lock{mutex_};
    term_ = std::stop_source{};
    lease_ = &lease;
    led_since_ = base::BootClock::now();
    absence_.saw_leader(led_since_, led_since_);
    last_error_.reset();
    ++statistics_.terms;
    return term_;
  }

  void end(Lease& lease) {
    {
      const std::lock_guard lock{mutex_};
      const base::Time now = base::BootClock::now();
      statistics_.led += now - led_since_;
      lease_ = nullptr;
      term_ = std::stop_source{std::nostopstate};
      absence_.saw_leader(led_since_, now);
      absence_.saw_nobody(now);
      letting_go_ = true;
    }
    const auto released = lease.release();
    const bool lost = lease.loss() || (!released && released.error().code == ErrorCode::lease_lost);
    const std::lock_guard lock{mutex_};
    letting_go_ = false;
    statistics_.losses += lost ? 1 : 0;
  }

  void rest() {
    std::unique_lock lock{mutex_};
    std::condition_variable_any never;
    never.wait_for(lock, stop_.get_token(), std::min(options_.rest, client::kLongestWait),
                   [] { return false; });
  }

  const std::shared_ptr<client::Service> service_;
  const std::string name_;
  const Work work_;
  WorkerOptions options_;
  std::stop_source stop_;

  mutable std::mutex mutex_;  // guards down to the blank line
  std::stop_source term_{std::nostopstate};
  const Lease* lease_ = nullptr;  // while the work runs
  bool letting_go_ = false;       // the work has ended, but the store does not know it yet
  base::Time led_since_{};
  client::Absence absence_;
  WorkerStatistics statistics_;
  std::optional<Error> last_error_;

  std::mutex joining_;
  std::thread thread_;
};

Worker::Worker(Client& client, std::string name, Work work, WorkerOptions options)
    : impl_{std::make_unique<Impl>(client.service_, std::move(name), std::move(work),
                                   std::move(options))} {}

Worker::~Worker() {
  if (!impl_->is_ours()) {
    static_cast<void>(impl_.release());  // its thread stayed in the parent
  }
}

bool Worker::leads() const noexcept {
  return impl_->is_ours() && impl_->leads();
}
void Worker::resign() noexcept {
  if (impl_->is_ours()) {
    impl_->resign();
  }
}
void Worker::stop() noexcept {
  if (impl_->is_ours()) {
    impl_->stop();
  }
}
void Worker::join() {
  if (impl_->is_ours()) {
    impl_->join();
  }
}
Result<std::optional<HolderInfo>> Worker::observe() {
  return impl_->observe();
}
WorkerStatistics Worker::statistics() const {
  return impl_->statistics();
}
std::optional<Error> Worker::last_error() const {
  return impl_->last_error();
}

}  // namespace holdfast
