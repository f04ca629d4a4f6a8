// PostgreSQL by hand: what a lock costs with plain statements.
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "baselines.h"
#include "native_locks.h"

namespace baselines {
namespace {

constexpr std::size_t kNames = 100;

class Connection {
 public:
  explicit Connection(const std::string& conninfo) : connection_{PQconnectdb(conninfo.c_str())} {
    if (PQstatus(connection_) != CONNECTION_OK) {
      give_up(PQerrorMessage(connection_));
    }
    PQsetNoticeReceiver(
        connection_, [](void*, const PGresult*) {}, nullptr);
  }
  ~Connection() { PQfinish(connection_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void run(const char* sql) { check(PQexec(connection_, sql)); }
  void prepare(const char* name, const char* sql) {
    check(PQprepare(connection_, name, sql, 0, nullptr));
  }
  void execute(const char* name, const char* value, const char* other) {
    const char* values[] = {value, other};
    check(PQexecPrepared(connection_, name, 2, values, nullptr, nullptr, 0));
  }
  void await_notice() {
    PGnotify* notice = nullptr;
    while ((notice = PQnotifies(connection_)) == nullptr) {
      pollfd socket{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
      if (poll(&socket, 1, -1) < 0 || PQconsumeInput(connection_) == 0) {
        give_up(PQerrorMessage(connection_));
      }
    }
    PQfreemem(notice);
  }

 private:
  void check(PGresult* result) {
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
      give_up(PQerrorMessage(connection_));
    }
    PQclear(result);
  }

  PGconn* connection_;
};

}  // namespace

NativeLock postgres_advisory_lock(const std::string& conninfo) {
  NativeLock lock;
  lock.connect = [conninfo] {
    return [connection = std::make_shared<Connection>(conninfo)](const std::string& sql) {
      connection->run(sql.c_str());
    };
  };
  lock.take = [](const std::string& name) -> Statements {
    return {"SELECT pg_advisory_lock(hashtext('" + name + "'))"};
  };
  lock.free = [](const std::string& name) -> Statements {
    return {"SELECT pg_advisory_unlock(hashtext('" + name + "'))"};
  };
  return lock;
}

double postgres_cycles(const std::string& conninfo, unsigned threads, double seconds) {
  Connection owner{conninfo};
  owner.run("DROP TABLE IF EXISTS bench_by_hand");
  owner.run("CREATE TABLE bench_by_hand (name text PRIMARY KEY, owner text NOT NULL)");
  std::vector<std::unique_ptr<Connection>> connections;
  for (unsigned thread = 0; thread < threads; ++thread) {
    connections.push_back(std::make_unique<Connection>(conninfo));
    connections.back()->prepare("take", "INSERT INTO bench_by_hand VALUES ($1, $2)");
    connections.back()->prepare("free", "DELETE FROM bench_by_hand WHERE name = $1 AND owner = $2");
  }
  const double rate = repeat(seconds, threads, [&](unsigned thread, std::size_t i) {
    const std::string name = std::to_string(thread) + ":" + std::to_string(i % kNames);
    connections[thread]->execute("take", name.c_str(), "0123456789abcdef0123456789abcdef");
    connections[thread]->execute("free", name.c_str(), "0123456789abcdef0123456789abcdef");
  });
  owner.run("DROP TABLE bench_by_hand");
  return rate;
}

namespace {

class Row {
 public:
  explicit Row(const std::string& conninfo) : connection_{conninfo} {
    connection_.run("CREATE TABLE IF NOT EXISTS bench_cold (id int PRIMARY KEY, n int)");
    connection_.run("INSERT INTO bench_cold VALUES (1, 0) ON CONFLICT DO NOTHING");
  }
  void write() { connection_.run("UPDATE bench_cold SET n = n + 1 WHERE id = 1"); }
  void do_not_wait_for_the_disk() { connection_.run("SET synchronous_commit = off"); }
  void write_and_notify() {
    connection_.run(
        "WITH t AS (UPDATE bench_cold SET n = n + 1 WHERE id = 1 RETURNING n) "
        "SELECT pg_notify('bench_cold', n::text) FROM t");
  }

 private:
  Connection connection_;
};

}  // namespace

double postgres_cold_write(const std::string& conninfo, double seconds) {
  Row row{conninfo};
  return repeat_cold(seconds, [&] { row.write(); });
}

double postgres_cold_notify(const std::string& conninfo, double seconds) {
  Row row{conninfo};
  row.do_not_wait_for_the_disk();
  Connection listener{conninfo};
  listener.run("LISTEN bench_cold");
  std::vector<double> gaps;
  const auto end = Clock::now() + std::chrono::duration<double>{seconds};
  do {
    Clock::time_point heard;
    std::jthread next{[&] {
      listener.await_notice();
      heard = Clock::now();
    }};
    std::this_thread::sleep_for(kBetweenHandOvers);
    const Clock::time_point began = Clock::now();
    row.write_and_notify();
    next.join();
    gaps.push_back(std::chrono::duration<double, std::micro>{heard - began}.count());
  } while (Clock::now() < end);
  std::sort(gaps.begin(), gaps.end());
  return gaps[gaps.size() / 2];
}

double postgres_hand_overs(const std::string& conninfo, double seconds) {
  Row row{conninfo};
  return fifo_hand_overs(seconds, [&] { row.write(); });
}

double postgres_wake_up(const std::string& conninfo, double seconds) {
  Connection holder{conninfo};
  Connection waiter{conninfo};
  std::vector<double> gaps;
  const auto end = Clock::now() + std::chrono::duration<double>{seconds};
  while (Clock::now() < end) {
    holder.run("SELECT pg_advisory_lock(42)");
    Clock::time_point entered;
    std::jthread next{[&] {
      waiter.run("SELECT pg_advisory_lock(42)");
      entered = Clock::now();
    }};
    std::this_thread::sleep_for(kBetweenHandOvers);
    const Clock::time_point released = Clock::now();
    holder.run("SELECT pg_advisory_unlock(42)");
    next.join();
    waiter.run("SELECT pg_advisory_unlock(42)");
    gaps.push_back(std::chrono::duration<double, std::micro>{entered - released}.count());
  }
  std::sort(gaps.begin(), gaps.end());
  return gaps.empty() ? 0 : gaps[gaps.size() / 2];
}

}  // namespace baselines
