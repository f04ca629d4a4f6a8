#include "engines/redlock/redlock_nodes.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::engines {
namespace {

constexpr std::size_t kMostEvents = 16;

}  // namespace

RedlockNodes::RedlockNodes(std::vector<std::unique_ptr<RedlockNode>> nodes)
    : nodes_{std::move(nodes)},
      events_{epoll_create1(EPOLL_CLOEXEC)},
      watched_(nodes_.size()),
      found_(nodes_.size()) {}

std::size_t RedlockNodes::ready() const noexcept {
  return static_cast<std::size_t>(std::count_if(nodes_.begin(), nodes_.end(),
                                                [](const auto& node) { return node->is_ready(); }));
}

void RedlockNodes::watch() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto wait = nodes_[i]->wait();
    const Watched wanted{nodes_[i]->socket(), wait.fd, wait.events};
    if (wanted == watched_[i]) {
      continue;
    }
    watched_[i] = wanted;
    epoll_event event{.events = static_cast<std::uint32_t>(wait.events), .data = {.u64 = i}};
    // A socket that was closed is forgotten by itself, and another may bear its number.
    if (wait.fd >= 0 && epoll_ctl(events_.get(), EPOLL_CTL_MOD, wait.fd, &event) != 0) {
      epoll_ctl(events_.get(), EPOLL_CTL_ADD, wait.fd, &event);
    }
  }
}

const std::vector<short>& RedlockNodes::look() {
  std::array<epoll_event, kMostEvents> events;
  found_.assign(nodes_.size(), 0);
  const int count = epoll_wait(events_.get(), events.data(), kMostEvents, 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    found_[event.data.u64] = static_cast<short>(event.events);
  }
  return found_;
}

void RedlockNodes::tell(std::uint64_t tag, std::string_view call) {
  std::vector<RedlockNode::Answer> late;
  for (const auto& node : nodes_) {
    if (node->is_ready()) {
      node->ask(tag, call);
      node->advance(0, late);
    }
  }
}

}  // namespace holdfast::engines
