// The keeper thread of a Service: time, doorbell, housekeeping; and who stands
// in for it at the door.

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "client/blocked_callers.h"
#include "client/service.h"

namespace holdfast::client {
namespace {

constexpr Duration kBreath = std::chrono::microseconds{200};

}  // namespace

void Service::keep() {
  keeper_id_ = std::this_thread::get_id();
  while (look_after_time()) {
    set_alarms();
    std::array<pollfd, 3> wanted{
        {{nudge_.get(), POLLIN, 0}, {timer_.get(), POLLIN, 0}, {door_.keeper_fd(), POLLIN, 0}}};
    if (poll(wanted.data(), wanted.size(), -1) < 0) {
      continue;  // a signal
    }
    std::uint64_t count = 0;
    if (wanted[0].revents != 0) {
      eventfd_read(nudge_.get(), &count);
    }
    if (wanted[2].revents != 0) {
      answer_doorbell(engine::Patience::none, Lead::may);  // a slow store must not delay a warning
    }
  }
}

// False when the service ends.
bool Service::look_after_time() {
  std::unique_lock lock{mutex_};
  wakes_at_ = base::Time::min();  // awake: whoever changes the agenda need not nudge
  const base::Time now = base::BootClock::now();
  if (coordinator_.look_due(now)) {
    lock.unlock();
    const bool changed = engine_->may_have_changed();
    lock.lock();
    coordinator_.look(now, changed);
  }
  if (stopping_) {
    return false;
  }
  for (const auto& [claim, well] : health_->collect(now)) {
    coordinator_.healthy(claim, well, now);
  }
  while (!waits_.empty() && waits_.begin()->first <= now) {
    cancellations_.emplace_back(waits_.begin()->second, ErrorCode::timed_out);
    waits_.erase(waits_.begin());
  }
  for (const auto& [claim, why] : std::exchange(cancellations_, {})) {
    coordinator_.cancel(claim, why, now);
  }
  coordinator_.tick(now);
  pump(lock, engine::Patience::none, Lead::may);  // a slow store must not delay a warning
  tidy_if_due(now);
  return true;
}

void Service::tidy_if_due(base::Time now) {
  if (now >= next_tidy_) {
    next_tidy_ = base::kNever;
    engine_->tidy();
  }
  const std::lock_guard lock{mutex_};
  if (std::exchange(active_, false) && next_tidy_ == base::kNever) {
    next_tidy_ = now + kTidyInterval;
  }
}

base::Time Service::next_due() const {
  const base::Time wait = waits_.empty() ? base::kNever : waits_.begin()->first;
  return std::min({coordinator_.next_due(), wait, ride_ends_});
}

void Service::set_alarms() {
  const std::lock_guard lock{mutex_};
  const base::Time due = std::min({next_due(), health_->next_timeout(), next_tidy_});
  wakes_at_ = base::kNever;
  set_alarm(due);
}

// With mutex_ held. The keeper is not to sleep past something that is due; but
// not at once either: a caller that is just let in would share its processor
// with the keeper, which has plenty of time to renew the grant.
void Service::bring_alarm_forward() {
  const base::Time due = next_due();
  if (due < wakes_at_) {
    set_alarm(std::max(due, base::BootClock::now() + kBreath));
  }
}

// With mutex_ held. Only ever brings the alarm forward.
void Service::set_alarm(base::Time due) {
  if (due >= wakes_at_ && wakes_at_ != base::kNever) {
    return;
  }
  wakes_at_ = due;
  itimerspec alarm{};  // all zero: off
  if (base::is_clock_fake()) {
    alarm.it_value.tv_nsec = base::nap(std::chrono::seconds{1}).count();
    timerfd_settime(timer_.get(), 0, &alarm, nullptr);
    return;
  }
  if (wakes_at_ != base::kNever) {
    // Zero would switch it off; the past rings at once.
    const auto since_boot = std::max(wakes_at_.time_since_epoch(), Duration{1});
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    alarm.it_value.tv_sec = seconds.count();
    alarm.it_value.tv_nsec = (since_boot - seconds).count();
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr);
}

void Service::answer_doorbell(engine::Patience patience, Lead lead) {
  const std::vector<engine::Ring> rings = engine_->answer_doorbell();
  std::unique_lock lock{mutex_};
  coordinator_.rang(rings, base::BootClock::now());
  pump(lock, patience, lead);
}

void Service::wait_at_door(BlockedCaller& caller, core::ClaimId claim, base::Time deadline) {
  {
    const std::lock_guard lock{mutex_};
    if (!coordinator_.stands_in_queue(claim)) {
      return;
    }
  }
  if (!door_.take()) {
    return;
  }
  caller.sleeps_at = &door_;
  while (!caller.box.settled() && base::BootClock::now() < deadline) {
    const bool rang = door_.wait(deadline);
    caller.sleeps_at = nullptr;
    if (rang) {
      answer_doorbell({std::min(deadline, base::BootClock::now() + kStoppablePatience)},
                      Lead::must);
    }
    caller.sleeps_at = &door_;
  }
  caller.sleeps_at = nullptr;
  door_.leave();
}

void Service::nudge() noexcept {
  eventfd_write(nudge_.get(), 1);
}

}  // namespace holdfast::client
