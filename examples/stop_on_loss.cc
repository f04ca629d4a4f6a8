// Long work under a lock that stops when the lock is lost, here because an
// operator takes it away. The same happens when the store cannot be reached:
// lost() fires while the lease still has some time left, so that the work can
// come to an end before anybody else may start.

#include <holdfast/holdfast.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

using namespace std::chrono_literals;

namespace {

// A sleep that a stop request cuts short.
void sleep_unless_stopped(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock{mutex};
  wake.wait_for(lock, stop, time, [] { return false; });
}

// Copies items one by one until all are done or the lock is lost.
int copy_items(const std::stop_token& stop, std::atomic<bool>& begun) {
  int copied = 0;
  while (copied < 1'000'000 && !stop.stop_requested()) {
    sleep_unless_stopped(stop, 10ms);  // an item
    ++copied;
    begun = true;
  }
  return copied;
}

}  // namespace

int main() {
  auto worker = holdfast::Client::open("sqlite:locks.db", {.label = "copy"});
  auto other = holdfast::Client::open("sqlite:locks.db", {.label = "operator"});
  if (!worker || !other) {
    std::cerr << (worker ? other : worker).error() << '\n';
    return 1;
  }
  std::atomic<bool> begun = false;
  std::atomic<bool> ended = false;
  std::optional<holdfast::LossReason> reason;
  std::jthread work{[&] {
    auto lease = worker->acquire("copy-job");
    if (!lease) {
      std::cerr << lease.error() << '\n';
      begun = true;
      return;
    }
    const int copied = copy_items(lease->lost(), begun);
    reason = lease->loss();
    std::cout << "stopped after " << copied << " items: " << (reason ? to_string(*reason) : "done")
              << '\n';
    ended = true;
    // For a revoked lock the release is the acknowledgement that others wait for.
    if (auto released = lease->release(); !released) {
      std::cerr << released.error() << '\n';
    }
  }};
  while (!begun) {
    std::this_thread::sleep_for(1ms);
  }

  auto revoked = other->force_release("copy-job");  // `holdfast release copy-job --force`
  auto next = other->acquire("copy-job", {.wait = 20s});
  const bool in_order = ended;  // the lock came only after the work had stopped
  work.join();
  if (!revoked || !next) {
    std::cerr << (revoked ? next.error() : revoked.error()) << '\n';
    return 1;
  }
  std::cout << *revoked << " holder revoked; the next one started "
            << (in_order ? "after" : "before") << " it stopped\n";
  return *revoked == 1 && in_order && reason == holdfast::LossReason::revoked ? 0 : 1;
}
