// The seats are in the same PostgreSQL database as the locks. Then no column
// for a fence is needed: the lock is checked inside the transaction that sells
// the seat, and a server that froze while it held the lock cannot sell it a
// second time.
//
//   example_guarded_postgres PORT [USER] [DATABASE]     of a server on this machine

#include <holdfast/holdfast.h>
#include <holdfast/postgres.h>
#include <libpq-fe.h>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

namespace {

class Seats {
 public:
  explicit Seats(const std::string& conninfo) : connection_{PQconnectdb(conninfo.c_str())} {
    if (PQstatus(connection_) != CONNECTION_OK) {
      throw std::runtime_error{PQerrorMessage(connection_)};
    }
  }
  ~Seats() { PQfinish(connection_); }
  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  PGconn* connection() { return connection_; }
  // The first cell, if there are rows; else how many rows were changed.
  std::string run(const std::string& statement) {
    PGresult* result = PQexec(connection_, statement.c_str());
    const ExecStatusType status = PQresultStatus(result);
    const std::string answer =
        PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : PQcmdTuples(result);
    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
      throw std::runtime_error{PQerrorMessage(connection_)};
    }
    return answer;
  }
  std::string buyer() { return run("SELECT buyer FROM seats WHERE id = 7"); }

 private:
  PGconn* connection_;
};

holdfast::Lease lock_seat(holdfast::Client& client, const holdfast::AcquireOptions& options) {
  auto lease = client.acquire("seat:7", options);
  if (!lease) {
    throw holdfast::LockError{lease.error()};
  }
  return std::move(*lease);
}

// True if the seat is the customer's.
bool sell(Seats& seats, const holdfast::Lease& lease, const std::string& customer) {
  seats.run("BEGIN");
  seats.run("UPDATE seats SET buyer = '" + customer + "' WHERE id = 7");
  const auto done = holdfast::postgres::guarded_commit(lease, seats.connection());
  if (!done) {
    std::cout << customer << " does not get it: " << done.error() << '\n';
  }
  return done.has_value();
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::cout << "usage: example_guarded_postgres PORT [USER] [DATABASE]\n";
    return 64;
  }
  const std::string port = words[1];
  const std::string user = count > 2 ? words[2] : "postgres";
  const std::string database = count > 3 ? words[3] : "postgres";
  const std::string url = "postgres://" + user + "@127.0.0.1:" + port + "/" + database;
  auto client = holdfast::Client::open(url);
  auto other = holdfast::Client::open(url);
  if (!client || !other) {
    throw holdfast::LockError{(client ? other : client).error()};
  }
  if (auto made = client->init(); !made) {
    throw holdfast::LockError{made.error()};
  }
  Seats seats{"host=127.0.0.1 port=" + port + " user=" + user + " dbname=" + database};
  seats.run("CREATE TABLE IF NOT EXISTS seats (id int PRIMARY KEY, buyer text NOT NULL)");
  seats.run(
      "INSERT INTO seats VALUES (7, '') ON CONFLICT (id) DO UPDATE SET buyer = excluded.buyer");

  // renew = false stands for a process that is frozen: nobody renews for it.
  const holdfast::Lease frozen = lock_seat(*client, {.ttl = 1s, .renew = false});
  const std::string fence = frozen.fence_sql().value();
  const holdfast::Lease next = lock_seat(*other, {.wait = 20s});  // once that lease is over
  const bool sold = sell(seats, next, "Grace");

  // The frozen one wakes up, and still believes that the seat is free.
  const bool sold_twice = sell(seats, frozen, "Ada");
  // The same with the condition in a statement of one's own, for any other client.
  const std::string changed = seats.run("UPDATE seats SET buyer = 'Ada' WHERE id = 7 AND " + fence);

  std::cout << "the seat is " << seats.buyer() << "'s\n";
  return sold && !sold_twice && changed == "0" && seats.buyer() == "Grace" ? 0 : 1;
}
