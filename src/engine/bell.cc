#include "engine/bell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace holdfast::engine {
namespace {

// Whoever leaves this many unanswered is served by its backstop poll.
constexpr std::size_t kMaxPending = 65'536;

}  // namespace

Bell::Bell() : fd_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {}

Bell::~Bell() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void Bell::ring(const Ring& ring) {
  const std::lock_guard lock{mutex_};
  if (pending_.size() < kMaxPending) {
    pending_.push_back(ring);
  }
  // Under the lock: once answer() has taken the rings, nothing may be left to
  // read. Cannot fail but for a full counter, which is readable anyway.
  if (pending_.size() == 1) {
    [[maybe_unused]] const int written = eventfd_write(fd_, 1);
  }
}

std::vector<Ring> Bell::answer() {
  const std::lock_guard lock{mutex_};
  eventfd_t count = 0;
  [[maybe_unused]] const int read = eventfd_read(fd_, &count);
  return std::exchange(pending_, {});
}

}  // namespace holdfast::engine
