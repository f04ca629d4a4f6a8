#include "engines/redlock/redlock_hints.h"

#include <sys/epoll.h>

#include <bit>
#include <string>

#include "engines/redis/redis_wire.h"
#include "engines/redlock/redlock_script.h"

namespace holdfast::engines {
namespace {

// What came further apart does not belong to one release.
constexpr base::Duration kTogether = std::chrono::seconds{1};

}  // namespace

RedlockHints::RedlockHints(const RedlockOptions& options, const std::shared_ptr<RedisTls>& tls,
                           const core::SessionId& session)
    : events_{epoll_create1(EPOLL_CLOEXEC)} {
  const std::string channel =
      options.prefix + std::string{kRedlockBells} + std::string{bytes_of(session)};
  for (std::size_t i = 0; i < options.nodes.size(); ++i) {
    bells_.push_back(std::make_unique<RedisBell>(options.node(i), tls, channel));
    epoll_event event{.events = EPOLLIN, .data = {}};
    epoll_ctl(events_.get(), EPOLL_CTL_ADD, bells_.back()->fd(), &event);
  }
}

void RedlockHints::start() {
  if (started_.exchange(true)) {
    return;
  }
  for (const auto& bell : bells_) {
    bell->start(base::BootClock::now());  // whoever answers the doorbell connects it
  }
}

std::vector<engine::Ring> RedlockHints::answer() {
  const std::lock_guard lock{mutex_};
  const base::Time now = base::BootClock::now();
  std::erase_if(heard_, [&](const auto& each) { return now - each.second.since > kTogether; });
  std::vector<engine::Ring> rings;
  for (std::size_t node = 0; node < bells_.size(); ++node) {
    for (const engine::Ring& ring : bells_[node]->answer()) {
      note(node, ring, now, rings);
    }
  }
  return rings;
}

// Who asks before a majority has let go asks in vain.
void RedlockHints::note(std::size_t node, const engine::Ring& ring, base::Time now,
                        std::vector<engine::Ring>& rings) {
  Heard& heard = heard_.try_emplace(ring.id, Heard{0, now}).first->second;
  heard.nodes |= 1U << node;
  if (static_cast<std::size_t>(std::popcount(heard.nodes)) > bells_.size() / 2) {
    rings.push_back({ring.id, 0});
    heard_.erase(ring.id);
  }
}

void RedlockHints::keep_alive() {
  for (const auto& bell : bells_) {
    if (started_) {
      static_cast<void>(bell->may_have_missed());
    }
  }
}

}  // namespace holdfast::engines
