// bench_baselines NAME SECONDS DIRECTORY (or a server's address): prints one figure.

#include "baselines.h"
#include "native_locks.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>
#include <thread>

namespace baselines {

double repeat(double seconds, unsigned threads,
              const std::function<void(unsigned thread, std::size_t i)>& once) {
  std::atomic<bool> over = false;
  std::barrier start{static_cast<std::ptrdiff_t>(threads) + 1};
  std::vector<std::size_t> counts(threads);
  std::vector<std::jthread> team;
  for (unsigned thread = 0; thread < threads; ++thread) {
    team.emplace_back([&, thread] {
      start.arrive_and_wait();
      std::size_t count = 0;
      for (; !over.load(std::memory_order_relaxed); ++count) {
        once(thread, count);
      }
      counts[thread] = count;
    });
  }
  start.arrive_and_wait();
  const Clock::time_point began = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>{seconds});
  over = true;
  const std::chrono::duration<double> elapsed = Clock::now() - began;
  team.clear();
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::size_t{0})) /
         elapsed.count();
}

double repeat_cold(double seconds, const std::function<void()>& once) {
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::duration<double>{seconds};
  while (times.size() < 3 || Clock::now() < end) {
    std::this_thread::sleep_for(kBetweenHandOvers);
    const Clock::time_point began = Clock::now();
    once();
    times.push_back(std::chrono::duration<double, std::micro>{Clock::now() - began}.count());
  }
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) / 2];
}

void give_up(const std::string& what) {
  std::fprintf(stderr, "bench_baselines: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

namespace {

double measure(std::string_view name, double seconds, const std::string& directory) {
  if (name == "sqlite-U1") {
    return sqlite_cycles(directory, seconds);
  }
  if (name == "fifo-C16") {
    return fifo_hand_overs(seconds);
  }
  if (name == "flock-U1") {
    return flock_cycles(directory, seconds);
  }
  if (name == "flock-C16") {
    return flock_hand_overs(directory, seconds);
  }
  if (name == "flock-P2") {
    return flock_wake_up(directory, seconds);
  }
  if (name == "postgres-U1") {
    return postgres_cycles(directory, 1, seconds);
  }
  if (name == "postgres-U32") {
    return postgres_cycles(directory, 32, seconds);
  }
  if (name == "postgres-C16") {
    return postgres_hand_overs(directory, seconds);
  }
  if (name == "postgres-P2") {
    return postgres_wake_up(directory, seconds);
  }
  if (name == "mysql-U1") {
    return mysql_cycles(directory, 1, seconds);
  }
  if (name == "mysql-U32") {
    return mysql_cycles(directory, 32, seconds);
  }
  if (name == "mysql-C16") {
    return mysql_hand_overs(directory, seconds);
  }
  if (name == "mysql-P2") {
    return mysql_wake_up(directory, seconds);
  }
  if (name == "zookeeper-U1") {
    return zookeeper_cycles(directory, seconds);
  }
  if (name == "zookeeper-U32") {
    return zookeeper_queues(directory, seconds);
  }
  if (name == "etcd-U1") {
    return etcd_cycles(directory, 1, seconds);
  }
  if (name == "etcd-U32") {
    return etcd_cycles(directory, 32, seconds);
  }
  if (name == "etcd-C16") {
    return etcd_hand_overs(directory, seconds);
  }
  if (name == "redis-U1") {
    return redis_half_sets(directory, seconds);
  }
  if (name == "redis-script") {
    return redis_scripts(directory, seconds);
  }
  if (name == "redlock-U1") {
    return redis_sets_at_once(directory, seconds);
  }
  if (name == "sqlite-cold") {
    return sqlite_cold_write(directory, seconds);
  }
  if (name == "redis-P2") {
    return redis_wake_up(directory, seconds);
  }
  if (name == "mysql-cold-wake") {
    return mysql_cold_wake_up(directory, seconds);
  }
  if (name == "mysql-cold") {
    return mysql_cold_write(directory, seconds);
  }
  if (name == "postgres-cold") {
    return postgres_cold_write(directory, seconds);
  }
  if (name == "postgres-notify") {
    return postgres_cold_notify(directory, seconds);
  }
  if (name.starts_with("get_lock-")) {
    return measure_native_lock(mysql_get_lock(directory), name.substr(9), seconds);
  }
  if (name.starts_with("for_update-")) {
    return measure_native_lock(mysql_for_update(directory), name.substr(11), seconds);
  }
  if (name.starts_with("pg_advisory-")) {
    return measure_native_lock(postgres_advisory_lock(directory), name.substr(12), seconds);
  }
  errno = EINVAL;
  give_up(std::string{name});
}

}  // namespace
}  // namespace baselines

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(
        stderr,
        "usage: bench_baselines sqlite-U1|sqlite-cold|fifo-C16|flock-U1|flock-C16|flock-P2 "
        "SECONDS DIRECTORY\n"
        "       bench_baselines postgres-(U1|U32|C16|P2|cold|notify) SECONDS CONNINFO\n"
        "       bench_baselines "
        "mysql-(U1|U32|C16|P2|cold|cold-wake)|redis-(U1|P2|script)|zookeeper-(U1|U32)|"
        "etcd-(U1|U32|C16) SECONDS PORT\n"
        "       bench_baselines redlock-U1 SECONDS PORT,PORT,...\n"
        "       bench_baselines (get_lock|for_update)-(U1|U32|C16|P2) SECONDS PORT\n"
        "       bench_baselines pg_advisory-(U1|U32|C16|P2) SECONDS CONNINFO\n");
    return 64;
  }
  std::printf("%.3f\n", baselines::measure(argv[1], std::atof(argv[2]), argv[3]));
}
