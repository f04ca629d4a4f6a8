// MySQL or MariaDB by hand: what a lock costs with plain statements.
#include <algorithm>
#include <memory>
#include <thread>

#include "baselines.h"
#include "mysql_connection.h"

namespace baselines {
namespace {

constexpr std::size_t kNames = 100;

}  // namespace

double mysql_cycles(const std::string& port, unsigned threads, double seconds) {
  MysqlConnection owner{port};
  owner.run("DROP TABLE IF EXISTS bench_by_hand");
  owner.run("CREATE TABLE bench_by_hand (name VARBINARY(255) PRIMARY KEY, owner BINARY(16))");
  std::vector<std::unique_ptr<MysqlConnection>> connections;
  for (unsigned thread = 0; thread < threads; ++thread) {
    connections.push_back(std::make_unique<MysqlConnection>(port));
  }
  const double rate = repeat(seconds, threads, [&](unsigned thread, std::size_t i) {
    const std::string name = std::to_string(thread) + ":" + std::to_string(i % kNames);
    connections[thread]->run("INSERT INTO bench_by_hand VALUES ('" + name +
                             "',x'0123456789abcdef0123456789abcdef')");
    connections[thread]->run("DELETE FROM bench_by_hand WHERE name='" + name +
                             "' AND owner=x'0123456789abcdef0123456789abcdef'");
  });
  owner.run("DROP TABLE bench_by_hand");
  return rate;
}

namespace {

class Row {
 public:
  explicit Row(const std::string& port) : connection_{port} {
    connection_.run("CREATE TABLE IF NOT EXISTS bench_cold (id INT PRIMARY KEY, n INT)");
    connection_.run("INSERT IGNORE INTO bench_cold VALUES (1,0)");
  }
  void write() { connection_.run("UPDATE bench_cold SET n=n+1 WHERE id=1"); }
  // `ring` before it is on disk.
  void write_and(const std::string& ring) {
    connection_.run("START TRANSACTION;UPDATE bench_cold SET n=n+1 WHERE id=1;" + ring + ";COMMIT");
  }

 private:
  MysqlConnection connection_;
};

}  // namespace

double mysql_cold_write(const std::string& port, double seconds) {
  Row row{port};
  return repeat_cold(seconds, [&] { row.write(); });
}

double mysql_cold_wake_up(const std::string& port, double seconds) {
  Row row{port};
  MysqlConnection sleeper{port};
  std::vector<double> gaps;
  const auto end = Clock::now() + std::chrono::duration<double>{seconds};
  while (gaps.size() < 3 || Clock::now() < end) {
    Clock::time_point woken;
    std::jthread next{[&] {
      sleeper.try_to_run("DO SLEEP(5)");  // it is interrupted
      sleeper.run("SELECT n FROM bench_cold WHERE id=1");
      woken = Clock::now();
    }};
    std::this_thread::sleep_for(kBetweenHandOvers);
    const Clock::time_point began = Clock::now();
    row.write_and("KILL QUERY " + sleeper.id());
    next.join();
    gaps.push_back(std::chrono::duration<double, std::micro>{woken - began}.count());
  }
  std::sort(gaps.begin(), gaps.end());
  return gaps[gaps.size() / 2];
}

double mysql_hand_overs(const std::string& port, double seconds) {
  Row row{port};
  return fifo_hand_overs(seconds, [&] { row.write(); });
}

double mysql_wake_up(const std::string& port, double seconds) {
  MysqlConnection holder{port};
  MysqlConnection waiter{port};
  holder.run("CREATE TABLE IF NOT EXISTS bench_row (id INT PRIMARY KEY)");
  holder.run("INSERT IGNORE INTO bench_row VALUES (1)");
  std::vector<double> gaps;
  const auto end = Clock::now() + std::chrono::duration<double>{seconds};
  while (Clock::now() < end) {
    holder.run("BEGIN");
    holder.run("SELECT id FROM bench_row WHERE id=1 FOR UPDATE");
    Clock::time_point entered;
    std::jthread next{[&] {
      waiter.run("BEGIN");
      waiter.run("SELECT id FROM bench_row WHERE id=1 FOR UPDATE");
      entered = Clock::now();
    }};
    std::this_thread::sleep_for(kBetweenHandOvers);
    const Clock::time_point released = Clock::now();
    holder.run("COMMIT");
    next.join();
    waiter.run("COMMIT");
    gaps.push_back(std::chrono::duration<double, std::micro>{entered - released}.count());
  }
  std::sort(gaps.begin(), gaps.end());
  return gaps.empty() ? 0 : gaps[gaps.size() / 2];
}

}  // namespace baselines
