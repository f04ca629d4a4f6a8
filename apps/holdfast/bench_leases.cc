// L100k: many locks held at once by one process.

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <optional>
#include <semaphore>
#include <thread>

#include "bench.h"

namespace holdfast::command::bench {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTtl = 30s;  // what one gets who asks for none
constexpr Duration kGlance = 1s;
constexpr std::ptrdiff_t kAtOnce = 512;

// What the process keeps on its heaps and stacks; neither files nor the memory
// that it shares with other processes.
double own_memory() {
  malloc_trim(0);  // what is free is not in use
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") {
      double kib = 0;
      status >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

Result<void> acquire_all(Client& client, const std::string& prefix, std::vector<Lease>& leases) {
  std::counting_semaphore<> room{kAtOnce};
  std::mutex mutex;
  std::optional<Error> trouble;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    room.acquire();
    client.acquire_then(prefix + std::to_string(i), {}, [&, i](Result<Lease> result) {
      if (result) {
        leases[i] = std::move(*result);
      } else {
        const std::lock_guard lock{mutex};
        trouble = std::move(result.error());
      }
      room.release();
    });
  }
  for (std::ptrdiff_t i = 0; i < kAtOnce; ++i) {
    room.acquire();
  }
  if (trouble) {
    return tl::unexpected{std::move(*trouble)};
  }
  return {};
}

// A renewal shows as a later end.
class Renewals {
 public:
  explicit Renewals(std::size_t leases) : ends_(leases) {}

  void look(const std::vector<Lease>& leases) {
    const Clock::time_point now = Clock::now();
    for (std::size_t i = 0; i < leases.size(); ++i) {
      const Clock::time_point end = now + leases[i].remaining();
      if (ends_[i] != Clock::time_point{} && end > ends_[i] + kGlance) {
        ++seen_;
      }
      ends_[i] = end;
    }
  }
  std::uint64_t seen() const noexcept { return seen_; }

 private:
  std::vector<Clock::time_point> ends_;
  std::uint64_t seen_ = 0;
};

double lost_among(const std::vector<Lease>& leases) {
  double lost = 0;
  for (const Lease& lease : leases) {
    lost += lease.is_alive() && !lease.loss() ? 0 : 1;
  }
  return lost;
}

}  // namespace

Result<Figures> measure_leases(const Plan& plan, std::uint32_t count) {
  auto client = Client::open(plan.url);
  if (!client) {
    return tl::unexpected{std::move(client.error())};
  }
  if (auto warm = client->acquire(plan.prefix + "warm"); !warm) {
    return tl::unexpected{std::move(warm.error())};
  }
  std::vector<Lease> leases(count);
  Renewals renewals{count};
  const double before = own_memory();
  const Clock::time_point asked = Clock::now();
  if (auto done = acquire_all(*client, plan.prefix, leases); !done) {
    return tl::unexpected{std::move(done.error())};
  }
  const double acquiring = seconds(Clock::now() - asked);

  // Longer than a ttl: whatever is alive then was renewed.
  const Clock::time_point began = Clock::now();
  const Clock::time_point end = began + std::max(plan.duration, kTtl + 1s);
  while (Clock::now() < end) {
    renewals.look(leases);
    std::this_thread::sleep_for(kGlance);
  }
  const double held = seconds(Clock::now() - began);
  const double memory = own_memory() - before;
  const double lost = lost_among(leases);
  leases.clear();
  if (auto flushed = client->flush(60s); !flushed) {
    return tl::unexpected{std::move(flushed.error())};
  }
  return Figures{{"bytes_per_lease", "bytes of memory a lease", memory / count},
                 {"lost", "leases lost", lost},
                 {"acquires_per_s", "acquires/s", count / acquiring},
                 {"renewals_per_s", "renewals/s", static_cast<double>(renewals.seen()) / held}};
}

}  // namespace holdfast::command::bench
