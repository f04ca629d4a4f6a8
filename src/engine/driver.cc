#include "engine/driver.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/fork.h"
#include "base/spinner.h"

namespace holdfast::engine {
namespace {

using Wait = Conversation::Wait;

// poll(2) until a point in time.
void poll_until(std::span<pollfd> wanted, base::Time until) {
  timespec left{};
  if (until != base::kNever) {
    const auto time = std::max(until - base::BootClock::now(), base::Duration::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    left = {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
  }
  if (ppoll(wanted.data(), wanted.size(), until == base::kNever ? nullptr : &left, nullptr) < 0) {
    for (pollfd& each : wanted) {
      each.revents = 0;  // a signal
    }
  }
}

bool is_due(const Wait& wait, short revents) {
  return revents != 0 || base::BootClock::now() >= wait.until;
}

}  // namespace

struct Driver::State {
  struct Guest {
    Conversation* conversation;
    Wait wait;
  };

  std::mutex mutex;
  std::vector<Guest> arrived;  // not yet seen by the thread
  bool stopping = false;
  std::thread thread;
  base::FileDescriptor nudge{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  base::Spinner spinner;

  static void take_over(const std::shared_ptr<State>& state, Guest guest);
  void work();
  void give_up_all();  // on the thread

 private:
  std::vector<pollfd> wanted(base::Time& until) const;
  void move_on(std::span<const pollfd> found);

  // The thread's own.
  std::vector<Guest> guests_;
  std::vector<Conversation*> over_;  // to be finished
};

void Driver::State::take_over(const std::shared_ptr<State>& state, Guest guest) {
  const std::lock_guard lock{state->mutex};
  state->arrived.push_back(guest);
  if (!state->thread.joinable()) {
    state->thread = std::thread{[state] { state->work(); }};
  }
  eventfd_write(state->nudge.get(), 1);
}

std::vector<pollfd> Driver::State::wanted(base::Time& until) const {
  std::vector<pollfd> all{{nudge.get(), POLLIN, 0}};
  until = base::kNever;
  for (const Guest& guest : guests_) {
    all.push_back({guest.wait.fd, guest.wait.events, 0});
    until = std::min(until, guest.wait.until);
  }
  return all;
}

void Driver::State::move_on(std::span<const pollfd> found) {
  std::vector<Guest> stay;
  for (std::size_t i = 0; i < guests_.size(); ++i) {
    Guest& guest = guests_[i];
    if (is_due(guest.wait, found[i].revents)) {
      const auto next = guest.conversation->advance(found[i].revents);
      if (!next) {
        over_.push_back(guest.conversation);
        continue;
      }
      guest.wait = *next;
    }
    stay.push_back(guest);
  }
  guests_ = std::move(stay);
  while (!over_.empty()) {
    Conversation* each = over_.back();
    over_.pop_back();
    each->finish();  // may bring it back, or end the driver
  }
}

void Driver::State::give_up_all() {
  std::unique_lock lock{mutex};
  while (!arrived.empty() || !guests_.empty() || !over_.empty()) {
    guests_.insert(guests_.end(), arrived.begin(), arrived.end());
    arrived.clear();
    lock.unlock();
    for (const Guest& guest : std::exchange(guests_, {})) {
      guest.conversation->give_up();
      while (guest.conversation->advance(0)) {
      }
      over_.push_back(guest.conversation);
    }
    for (Conversation* each : std::exchange(over_, {})) {
      each->finish();
    }
    lock.lock();
  }
}

void Driver::State::work() {
  std::unique_lock lock{mutex};
  while (!stopping) {
    guests_.insert(guests_.end(), arrived.begin(), arrived.end());
    arrived.clear();
    lock.unlock();
    base::Time until{};
    auto found = wanted(until);
    poll_until(found, until);
    if (found.front().revents != 0) {
      eventfd_t count = 0;
      eventfd_read(nudge.get(), &count);
    }
    move_on(std::span{found}.subspan(1));
    lock.lock();
  }
  lock.unlock();
  give_up_all();
}

Driver::Driver() : generation_{base::fork_generation()}, state_{std::make_shared<State>()} {}

Driver::~Driver() {
  if (generation_ != base::fork_generation()) {
    new std::shared_ptr<State>{std::move(state_)};  // the thread is the parent's
    return;
  }
  std::unique_lock lock{state_->mutex};
  state_->stopping = true;
  eventfd_write(state_->nudge.get(), 1);
  if (!state_->thread.joinable()) {
    return;
  }
  const bool on_own_thread = state_->thread.get_id() == std::this_thread::get_id();
  lock.unlock();
  if (on_own_thread) {  // somebody that finish() told has let go of the engine
    state_->give_up_all();
    state_->thread.detach();
  } else {
    state_->thread.join();
  }
}

void Driver::run(Conversation& conversation, Patience patience) {
  const bool in_a_hurry = patience.until == base::Time::min();
  short ready = 0;
  while (true) {
    const auto wait = conversation.advance(ready);
    if (!wait) {
      conversation.finish();
      return;
    }
    pollfd wanted{wait->fd, wait->events, 0};
    if (!in_a_hurry) {
      const base::Time began = base::BootClock::now();
      const base::Time until = std::min(wait->until, patience.until);
      if (wait->fd >= 0) {
        state_->spinner.spin({.most = std::min(patience.spin, until - began)},
                             [&] { return poll(&wanted, 1, 0) > 0; });
      }
      while (!is_due(*wait, wanted.revents) && base::BootClock::now() < patience.until) {
        poll_until({&wanted, 1}, until);
      }
      if (wait->fd >= 0) {
        state_->spinner.learn(base::BootClock::now() - began);
      }
    }
    // To wait for this very moment is to ask for a thread that may be kept.
    if (in_a_hurry || !is_due(*wait, wanted.revents)) {
      State::take_over(state_, {&conversation, *wait});
      return;
    }
    ready = wanted.revents;
  }
}

}  // namespace holdfast::engine
