// The locks that MySQL or MariaDB has of its own: GET_LOCK() and SELECT ... FOR
// UPDATE. A connection holds them and ends them; there is no lease.
#include <algorithm>
#include <memory>
#include <thread>

#include "baselines.h"
#include "mysql_connection.h"

namespace baselines {
namespace {

constexpr unsigned kNames = 100;
constexpr unsigned kContenders = 16;

using Statements = std::vector<std::string>;

Statements take(MysqlLock kind, const std::string& name) {
  if (kind == MysqlLock::user_level) {
    return {"SELECT GET_LOCK('" + name + "',600)"};
  }
  return {"BEGIN", "SELECT name FROM bench_locks WHERE name='" + name + "' FOR UPDATE"};
}

Statements free(MysqlLock kind, const std::string& name) {
  if (kind == MysqlLock::user_level) {
    return {"SELECT RELEASE_LOCK('" + name + "')"};
  }
  return {"COMMIT"};
}

void run(MysqlConnection& connection, const Statements& statements) {
  for (const std::string& statement : statements) {
    connection.run(statement);
  }
}

std::string name_of(unsigned thread, std::size_t i) {
  return "peer:" + std::to_string(thread) + ":" + std::to_string(i % kNames);
}

using Connections = std::vector<std::unique_ptr<MysqlConnection>>;

// One a thread; and a row for every name that a thread uses.
Connections connect(const std::string& port, unsigned threads) {
  Connections connections;
  for (unsigned thread = 0; thread < threads; ++thread) {
    connections.push_back(std::make_unique<MysqlConnection>(port));
  }
  MysqlConnection& owner = *connections.front();
  owner.run("CREATE TABLE IF NOT EXISTS bench_locks (name VARCHAR(64) PRIMARY KEY)");
  for (unsigned thread = 0; thread < threads; ++thread) {
    for (unsigned i = 0; i < kNames; ++i) {
      owner.run("INSERT IGNORE INTO bench_locks VALUES ('" + name_of(thread, i) + "')");
    }
  }
  return connections;
}

}  // namespace

double mysql_lock_cycles(MysqlLock kind, const std::string& port, unsigned threads,
                         double seconds) {
  const Connections connections = connect(port, threads);
  return repeat(seconds, threads, [&](unsigned thread, std::size_t i) {
    const std::string name = name_of(thread, i);
    run(*connections[thread], take(kind, name));
    run(*connections[thread], free(kind, name));
  });
}

double mysql_lock_hand_overs(MysqlLock kind, const std::string& port, double seconds) {
  const Connections connections = connect(port, kContenders);
  const std::string name = name_of(0, 0);
  unsigned holder = kContenders;  // guarded, like what follows, by the lock itself
  std::size_t hand_overs = 0;
  std::size_t calls = 0;
  const double rate = repeat(seconds, kContenders, [&](unsigned thread, std::size_t) {
    run(*connections[thread], take(kind, name));
    ++calls;
    hand_overs += holder == thread ? 0U : 1U;
    holder = thread;
    run(*connections[thread], free(kind, name));
  });
  return rate * static_cast<double>(hand_overs) / static_cast<double>(calls);
}

double mysql_lock_wake_up(MysqlLock kind, const std::string& port, double seconds) {
  const Connections connections = connect(port, 2);
  const std::string name = name_of(0, 0);
  std::vector<double> gaps;
  const auto end = Clock::now() + std::chrono::duration<double>{seconds};
  do {
    run(*connections[0], take(kind, name));
    Clock::time_point entered;
    std::jthread next{[&] {
      run(*connections[1], take(kind, name));
      entered = Clock::now();
    }};
    std::this_thread::sleep_for(kBetweenHandOvers);
    const Clock::time_point released = Clock::now();
    run(*connections[0], free(kind, name));
    next.join();
    run(*connections[1], free(kind, name));
    gaps.push_back(std::chrono::duration<double, std::micro>{entered - released}.count());
  } while (Clock::now() < end);
  std::sort(gaps.begin(), gaps.end());
  return gaps[gaps.size() / 2];
}

}  // namespace baselines
