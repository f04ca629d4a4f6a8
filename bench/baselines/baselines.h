#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

// What holdfast is measured against: the same scenarios with the bare means
// that it is made of. Each returns the figure that `holdfast bench` calls by
// the same name.
namespace baselines {

using Clock = std::chrono::steady_clock;

// The two write transactions of a cycle, as the sqlite engine makes them, with
// its schema, its statements and its pragmas: cycles/s.
double sqlite_cycles(const std::string& directory, double seconds);

// 16 threads and a first-in-first-out queue of condition variables: hand-overs/s. If there is
// something to do at the end of each tenancy, after 32 hand-overs, the others wait for it.
double fifo_hand_overs(double seconds, const std::function<void()>& at_its_end = {});

// flock(2): no lease, no queue, no token.
double flock_cycles(const std::string& directory, double seconds);
double flock_hand_overs(const std::string& directory, double seconds);
// Release to entry in a process that sleeps: the median in µs.
double flock_wake_up(const std::string& directory, double seconds);

// PostgreSQL by hand, two awaited statements (INSERT, DELETE) a cycle and a
// connection a thread: cycles/s.
double postgres_cycles(const std::string& conninfo, unsigned threads, double seconds);
// pg_advisory_unlock() to the return of pg_advisory_lock() elsewhere: the
// median in µs.
double postgres_wake_up(const std::string& conninfo, double seconds);

// MySQL or MariaDB by hand, in the same way: cycles/s; and COMMIT to the return
// of SELECT ... FOR UPDATE elsewhere: the median in µs.
double mysql_cycles(const std::string& port, unsigned threads, double seconds);
double mysql_wake_up(const std::string& port, double seconds);

// ZooKeeper by hand, a node made and deleted: cycles/s.
double zookeeper_cycles(const std::string& port, double seconds);
// The same by 32 threads on one connection, which also list the queue as a lock must.
double zookeeper_queues(const std::string& port, double seconds);
// etcd by hand, the two transactions of a lock, a connection a thread: cycles/s. And the FIFO
// queue with one such transaction at the end of each tenancy: hand-overs/s.
double etcd_cycles(const std::string& port, unsigned threads, double seconds);
double etcd_hand_overs(const std::string& port, double seconds);
// Redis by hand: half of the SETs/s on one connection.
double redis_half_sets(const std::string& port, double seconds);
// One script a cycle that reads and writes two keys, as the release of one lock and the next
// acquire must: scripts/s on one connection.
double redis_scripts(const std::string& port, double seconds);
// A SET at each of these servers at once, all awaited: the median in µs.
double redis_sets_at_once(const std::string& ports, double seconds);
// What a hand-over in P2 is made of: a SET and a PUBLISH in one packet, until a subscriber that
// sleeps has heard of it: the median in µs.
double redis_wake_up(const std::string& port, double seconds);

// Calls `once(thread, i)` in every thread until the time is over: calls/s.
double repeat(double seconds, unsigned threads,
              const std::function<void(unsigned thread, std::size_t i)>& once);

// The least that a release in P2 does before it wakes anybody, one write, after the same
// pause: the median in µs. No library on that store can be faster.
double sqlite_cold_write(const std::string& directory, double seconds);
double mysql_cold_write(const std::string& port, double seconds);
// The same, which wakes a connection that sleeps in the server before its commit: until the woken
// one has read the row.
double mysql_cold_wake_up(const std::string& port, double seconds);
double postgres_cold_write(const std::string& conninfo, double seconds);
// And with what wakes the other one: until a listener has the NOTIFY of such a write, which does
// not wait for the disk.
double postgres_cold_notify(const std::string& conninfo, double seconds);

// The same queue with one such write after every 32 hand-overs, which fairness asks for.
double mysql_hand_overs(const std::string& port, double seconds);
double postgres_hand_overs(const std::string& conninfo, double seconds);

// As `holdfast bench` waits between hand-overs: processors and caches are cold.
constexpr std::chrono::milliseconds kBetweenHandOvers{700};
// Calls `once` after such pauses: the median of what it takes, in µs.
double repeat_cold(double seconds, const std::function<void()>& once);

[[noreturn]] void give_up(const std::string& what);

}  // namespace baselines
