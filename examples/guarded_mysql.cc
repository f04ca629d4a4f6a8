// The seats are in the same MySQL or MariaDB database as the locks. Then no
// column for a fence is needed: the lock is checked inside the transaction that
// sells the seat, and a server that froze while it held the lock cannot sell it
// a second time.
//
//   example_guarded_mysql PORT [USER] [DATABASE]     of a server on this machine

#include <holdfast/holdfast.h>
#include <holdfast/mysql.h>
#include <mysql.h>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

namespace {

class Seats {
 public:
  Seats(const std::string& user, unsigned port, const std::string& database)
      : connection_{mysql_init(nullptr)} {
    if (mysql_real_connect(connection_, "127.0.0.1", user.c_str(), nullptr, database.c_str(), port,
                           nullptr, 0) == nullptr) {
      throw std::runtime_error{mysql_error(connection_)};
    }
  }
  ~Seats() { mysql_close(connection_); }
  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  MYSQL* connection() { return connection_; }
  void run(const std::string& statement) {
    if (mysql_query(connection_, statement.c_str()) != 0) {
      throw std::runtime_error{mysql_error(connection_)};
    }
  }
  std::uint64_t change(const std::string& statement) {
    run(statement);
    return mysql_affected_rows(connection_);
  }
  std::string buyer() {
    run("SELECT buyer FROM seats WHERE id = 7");
    MYSQL_RES* result = mysql_store_result(connection_);
    const std::string found = mysql_fetch_row(result)[0];
    mysql_free_result(result);
    return found;
  }

 private:
  MYSQL* connection_;
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
  seats.run("START TRANSACTION");
  seats.run("UPDATE seats SET buyer = '" + customer + "' WHERE id = 7");
  const auto done = holdfast::mysql::guarded_commit(lease, seats.connection());
  if (!done) {
    std::cout << customer << " does not get it: " << done.error() << '\n';
  }
  return done.has_value();
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::cout << "usage: example_guarded_mysql PORT [USER] [DATABASE]\n";
    return 64;
  }
  const std::string port = words[1];
  const std::string user = count > 2 ? words[2] : "app";
  const std::string database = count > 3 ? words[3] : "holdfast";
  auto client = holdfast::Client::open("mysql://" + user + "@127.0.0.1:" + port + "/" + database);
  auto other = holdfast::Client::open("mysql://" + user + "@127.0.0.1:" + port + "/" + database);
  if (!client || !other) {
    throw holdfast::LockError{(client ? other : client).error()};
  }
  Seats seats{user, static_cast<unsigned>(std::stoul(port)), database};
  seats.run("CREATE TABLE IF NOT EXISTS seats (id INT PRIMARY KEY, buyer VARCHAR(50) NOT NULL)");
  seats.run("REPLACE INTO seats VALUES (7, '')");

  // renew = false stands for a process that is frozen: nobody renews for it.
  const holdfast::Lease frozen = lock_seat(*client, {.ttl = 1s, .renew = false});
  const std::string fence = frozen.fence_sql().value();
  const holdfast::Lease next = lock_seat(*other, {.wait = 20s});  // once that lease is over
  const bool sold = sell(seats, next, "Grace");

  // The frozen one wakes up, and still believes that the seat is free.
  const bool sold_twice = sell(seats, frozen, "Ada");
  // The same with the condition in a statement of one's own, for any other client.
  const auto changed = seats.change("UPDATE seats SET buyer = 'Ada' WHERE id = 7 AND " + fence);

  std::cout << "the seat is " << seats.buyer() << "'s\n";
  return sold && !sold_twice && changed == 0 && seats.buyer() == "Grace" ? 0 : 1;
}
