#include "client/service.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

#include "base/fork.h"
#include "base/host.h"
#include "client/blocked_callers.h"
#include "client/wish.h"
#include "engine/registry.h"

namespace holdfast::client {
namespace {

constexpr const char* kCancelledBefore = "the wait was cancelled before it began";

base::Time end_of(const std::optional<Duration>& wait) {
  if (!wait || *wait == Duration::zero() || *wait > kLongestWait) {
    return base::kNever;  // a try ends with the store's answer
  }
  return base::BootClock::now() + *wait;
}

Error forked() {
  return {ErrorCode::invalid_argument,
          "this client was made before fork(); make a new one in the child", std::nullopt};
}

}  // namespace

// What this thread did after its last releases. One that went on to the next
// lock at once will likely do so again, and then both can travel together.
class Service::Habit {
 public:
  static Habit& of(const Service& service) {
    static thread_local Habit habit;
    if (habit.service_ != &service) {
      habit = Habit{};
      habit.service_ = &service;
    }
    return habit;
  }

  void asks(base::Time now) noexcept {
    times_ = now - released_ < kAtOnce ? std::min(times_ + 1, kSure) : 0;
    short_holds_ = now - entered_ < kAtOnce ? std::min(short_holds_ + 1, kSure) : 0;
  }
  // Will it ask again at once, after its release?
  bool is_sure() const noexcept { return times_ == kSure; }
  void released(base::Time now) noexcept { released_ = now; }
  // Will it ask again at once, after it was let in?
  bool comes_back() const noexcept { return short_holds_ == kSure; }
  void entered(base::Time now, std::uint64_t gathering) noexcept {
    entered_ = now;
    gathering_ = gathering;
  }
  // Which batch waits for it, if one does.
  std::uint64_t take_gathering() noexcept { return std::exchange(gathering_, 0); }

 private:
  static constexpr Duration kAtOnce = std::chrono::microseconds{50};
  static constexpr int kSure = 4;
  const Service* service_ = nullptr;
  base::Time released_{};
  base::Time entered_{};
  int times_ = 0;
  int short_holds_ = 0;
  std::uint64_t gathering_ = 0;
};

// With mutex_ held. A service may stand where another one stood: hence the second condition.
void Service::came_back(Habit& habit) {
  if (habit.take_gathering() == gathering_ && coming_back_ > 0) {
    --coming_back_;
  }
}

// --- those who wait

class Service::AsyncCaller : public GrantReceiver {
 public:
  AsyncCaller(std::shared_ptr<Service> service, std::function<void(Result<Lease>)> done)
      : service_{std::move(service)}, done_{std::move(done)} {}

  void deliver(Result<std::shared_ptr<LeaseState>> result) override {
    std::unique_ptr<StopCallback> watch;
    std::shared_ptr<Service> service;
    {
      const std::lock_guard lock{mutex_};
      delivered_ = true;
      watch = std::move(watch_);
      service = std::move(service_);
    }
    watch = nullptr;
    {
      const std::lock_guard lock{service->mutex_};
      service->waits_.erase(wait);
    }
    const auto done = std::move(done_);
    if (result) {
      done(service->make_lease(std::move(*result)));
    } else {
      done(tl::unexpected{std::move(result.error())});
    }
  }

  void watch(const std::stop_token& stop) {
    const std::lock_guard lock{mutex_};
    if (!delivered_ && stop.stop_possible()) {
      watch_ = std::make_unique<StopCallback>(
          stop, [service = service_.get(), claim = wait.second] { service->cancel_soon(claim); });
    }
  }

  std::pair<base::Time, core::ClaimId> wait;  // its place in waits_; set before delivery

 private:
  using StopCallback = std::stop_callback<std::function<void()>>;
  std::mutex mutex_;
  bool delivered_ = false;
  std::unique_ptr<StopCallback> watch_;
  std::shared_ptr<Service> service_;
  std::function<void(Result<Lease>)> done_;
};

// --- birth and death

Result<std::shared_ptr<Service>> Service::open(std::string_view url, const ClientOptions& options) {
  auto parsed = engine::Url::parse(url);
  if (!parsed) {
    return tl::unexpected{std::move(parsed.error())};
  }
  engine::EngineOptions how;
  how.session = core::SessionId::random();
  how.party = {options.label.empty() ? base::program_name() : options.label, base::host_name(),
               getpid()};
  auto engine = engine::open(*parsed, how);
  if (!engine) {
    return tl::unexpected{std::move(engine.error())};
  }
  return open(std::move(*engine), how.session, options);
}

Result<std::shared_ptr<Service>> Service::open(std::unique_ptr<engine::Engine> engine,
                                               const core::SessionId& session,
                                               const ClientOptions& options) {
  if (options.backstop_poll < std::chrono::milliseconds{1}) {
    return fail(ErrorCode::invalid_argument, "backstop_poll must be at least 1 ms");
  }
  if (options.spin < Duration::zero() || options.spin > kMaxSpin) {
    return fail(ErrorCode::invalid_argument, "spin must be 0 to 10 ms");
  }
  Coordinator::Config config;
  config.session = session;
  config.lanes = engine->lanes();
  config.ride = engine->ride();
  config.tokens = engine->capabilities().token != TokenKind::none;
  config.backstop_poll = std::min(options.backstop_poll, kLongestWait);
  std::shared_ptr<Service> service{new Service{std::move(engine), std::move(config), options.spin},
                                   &Service::destroy};
  if (!service->nudge_ || !service->timer_) {
    return fail(ErrorCode::unavailable, "no file descriptor left for the client's timer");
  }
  try {
    service->start();
  } catch (const std::system_error& error) {
    return fail(ErrorCode::unavailable, std::string{"cannot start a thread: "} + error.what());
  }
  return service;
}

Service::Service(std::unique_ptr<engine::Engine> engine, Coordinator::Config config, Duration spin)
    : generation_{base::fork_generation()},
      engine_{std::move(engine)},
      door_{engine_->doorbell_fd()},
      coordinator_{std::move(config)},
      lanes_(engine_->lanes()),
      ride_{engine_->ride()},
      gather_{engine_->gather()},
      spin_{std::thread::hardware_concurrency() > 1 ? spin : Duration{}},
      nudge_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)},
      timer_{timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)},
      health_{std::make_unique<HealthRunner>([this] { nudge(); })} {}

void Service::start() {
  keeper_ = std::thread{[this] { keep(); }};
}

Service::~Service() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  nudge();
  if (keeper_.joinable()) {
    keeper_.join();
  }
  engine_ = nullptr;  // no outcome comes after this
}

void Service::destroy(Service* service) {
  if (!service->is_ours()) {
    return;  // after fork(): its threads and its connection belong to the parent
  }
  if (!service->callbacks_.is_current() && !service->on_keeper() && !service->on_engines_thread()) {
    delete service;
    return;
  }
  // A callback let go of the last handle: a thread cannot wait for itself.
  try {
    std::thread{[service] { delete service; }}.detach();
  } catch (const std::system_error&) {
    // No thread to be had: its keeper lives on, idle, until the process ends.
  }
}

bool Service::is_ours() const noexcept {
  return generation_ == base::fork_generation();
}

Result<engine::Engine*> Service::engine() {
  if (!is_ours()) {
    return tl::unexpected{forked()};
  }
  return engine_.get();
}

// --- calls

Lease Service::make_lease(std::shared_ptr<LeaseState> state) {
  return Lease{std::make_unique<LeaseHandle>(shared_from_this(), std::move(state))};
}

void Service::cancel(core::ClaimId claim, ErrorCode why) {
  std::unique_lock lock{mutex_};
  coordinator_.cancel(claim, why, base::BootClock::now());
  pump(lock, engine::Patience::none, Lead::may);
}

// For callers that must not do anything else, such as stop callbacks.
void Service::cancel_soon(core::ClaimId claim) {
  {
    const std::lock_guard lock{mutex_};
    cancellations_.emplace_back(claim, ErrorCode::cancelled);
  }
  nudge();
}

Result<Lease> Service::acquire(std::string_view name, const AcquireOptions& options) {
  if (!is_ours()) {
    return tl::unexpected{forked()};
  }
  auto wish = make_wish(name, options, capabilities());
  if (!wish) {
    return tl::unexpected{std::move(wish.error())};
  }
  if (options.stop.stop_requested()) {
    return fail(ErrorCode::cancelled, kCancelledBefore);
  }
  return acquire(*wish, end_of(options.wait), options.stop);
}

Result<Lease> Service::acquire(const Wish& wish, base::Time deadline, const std::stop_token& stop) {
  const auto caller = std::make_shared<BlockedCaller>();
  std::unique_lock lock{mutex_};
  active_ = true;
  Habit& habit = Habit::of(*this);
  habit.asks(base::BootClock::now());
  came_back(habit);
  caller->comes_back = habit.comes_back();
  const core::ClaimId claim = coordinator_.acquire(wish, caller, base::BootClock::now());
  const bool asked_itself =
      pump(lock,
           {stop.stop_possible() ? std::min(deadline, base::BootClock::now() + kStoppablePatience)
                                 : deadline},
           Lead::must, coordinator_.lane_of(wish.name));
  std::optional<std::stop_callback<std::function<void()>>> watch;
  if (stop.stop_possible()) {
    watch.emplace(stop, [caller] { caller->interrupt(); });
  }
  auto result = await(*caller, claim, asked_itself, deadline);
  if (!result) {
    cancel(claim, caller->box.interrupted() ? ErrorCode::cancelled : ErrorCode::timed_out);
    result = caller->box.take();  // the cancellation, or a grant that was faster
  }
  if (!*result) {
    return tl::unexpected{std::move(result->error())};
  }
  habit.entered(base::BootClock::now(), caller->gathering);
  return make_lease(std::move(**result));
}

std::optional<Result<std::shared_ptr<LeaseState>>> Service::await(BlockedCaller& caller,
                                                                  core::ClaimId claim,
                                                                  bool asked_itself,
                                                                  base::Time deadline) {
  const base::Time began = base::BootClock::now();
  const Duration most = spin_ > Duration::zero() ? kShortWait : Duration::zero();
  const bool there = grants_.spin({.most = std::min(most, deadline - began), .turns = kTurns},
                                  [&] { return caller.box.settled(); });
  if (asked_itself && !there) {
    wait_at_door(caller, claim, deadline);
  }
  auto result = caller.box.take_until(deadline);
  grants_.learn(base::BootClock::now() - began);
  return result;
}

void Service::acquire_then(std::string_view name, const AcquireOptions& options,
                           std::function<void(Result<Lease>)> done) {
  if (!is_ours()) {
    done(tl::unexpected{forked()});
    return;
  }
  auto wish = make_wish(name, options, capabilities());
  if (!wish) {
    done(tl::unexpected{std::move(wish.error())});
    return;
  }
  if (options.stop.stop_requested()) {
    done(fail(ErrorCode::cancelled, kCancelledBefore));
    return;
  }
  const base::Time deadline = end_of(options.wait);
  const auto caller = std::make_shared<AsyncCaller>(shared_from_this(), std::move(done));
  std::unique_lock lock{mutex_};
  active_ = true;
  const core::ClaimId claim = coordinator_.acquire(*wish, caller, base::BootClock::now());
  caller->wait = {deadline, claim};
  waits_.insert(caller->wait);
  pump(lock, engine::Patience::none, Lead::keeper);
  caller->watch(options.stop);
}

void Service::cancel_async() {
  {
    const std::lock_guard lock{mutex_};
    for (const auto& [deadline, claim] : waits_) {
      cancellations_.emplace_back(claim, ErrorCode::cancelled);
    }
    waits_.clear();
  }
  nudge();
}

Result<void> Service::release(core::ClaimId claim) {
  if (!is_ours()) {
    return tl::unexpected{forked()};
  }
  const auto caller = std::make_shared<BlockedAnswer>();
  std::unique_lock lock{mutex_};
  came_back(Habit::of(*this));  // and waits for the outcome
  coordinator_.release(claim, caller, base::BootClock::now());
  pump(lock, engine::Patience::for_outcomes, Lead::must);
  auto result = caller->box.take();
  if (!result) {
    return tl::unexpected{std::move(result.error())};
  }
  return {};
}

void Service::release_in_background(core::ClaimId claim) noexcept {
  std::unique_lock lock{mutex_};
  const base::Time now = base::BootClock::now();
  coordinator_.release(claim, nullptr, now);
  const bool rides = ride_ > Duration::zero() && Habit::of(*this).is_sure();
  pump(lock, engine::Patience::none, rides ? Lead::ride : Lead::may);
  Habit::of(*this).released(base::BootClock::now());
}

Result<void> Service::flush(Duration at_most) {
  if (!is_ours()) {
    return tl::unexpected{forked()};
  }
  std::unique_lock lock{mutex_};
  const auto drained = [this] { return coordinator_.drained(); };
  if (!drained_.wait_for(lock, std::min(at_most, kLongestWait), drained)) {
    return fail(ErrorCode::outcome_unknown,
                "the store has not answered all releases; those locks free themselves");
  }
  return {};
}

Result<std::uint32_t> Service::ask(std::string_view name, core::Operation operation) {
  if (!is_ours()) {
    return tl::unexpected{forked()};
  }
  if (auto checked = check_name(name); !checked) {
    return tl::unexpected{std::move(checked.error())};
  }
  const auto caller = std::make_shared<BlockedAnswer>();
  std::unique_lock lock{mutex_};
  coordinator_.ask({std::string{name}, std::move(operation)}, caller);
  pump(lock, engine::Patience::for_outcomes, Lead::must);
  return caller->box.take();
}

// --- LeaseHandle

Result<void> LeaseHandle::release() {
  if (!service_->is_ours()) {
    return tl::unexpected{forked()};
  }
  if (!released_.exchange(true)) {
    if (auto result = service_->release(state_->claim); !result) {
      failure_ = std::make_unique<const Error>(std::move(result.error()));
    }
  }
  if (failure_ != nullptr) {
    return tl::unexpected{*failure_};
  }
  return {};
}

void LeaseHandle::release_in_background() noexcept {
  if (!released_.exchange(true) && service_->is_ours()) {
    service_->release_in_background(state_->claim);
  }
}

}  // namespace holdfast::client
