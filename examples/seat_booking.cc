// Several servers sell seats. A lock makes sure that one of them at a time
// deals with a seat; the token makes sure that a server which froze while it
// held the lock cannot sell the seat a second time when it wakes up.
//
// The seats live in an SQLite table of their own; the same UPDATE works on any
// SQL database.

#include <holdfast/holdfast.h>
#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr int kSeats = 5;

class SeatTable {
 public:
  SeatTable() {
    if (sqlite3_open("seats.db", &db_) != SQLITE_OK) {
      throw std::runtime_error{sqlite3_errmsg(db_)};
    }
    sqlite3_busy_timeout(db_, 5000);
    run("CREATE TABLE IF NOT EXISTS seats ("
        " id INTEGER PRIMARY KEY,"
        " buyer TEXT NOT NULL DEFAULT '',"
        " fence INTEGER NOT NULL DEFAULT 0)");  // the largest token that was here
  }
  ~SeatTable() { sqlite3_close(db_); }
  SeatTable(const SeatTable&) = delete;
  SeatTable& operator=(const SeatTable&) = delete;

  void put_up_for_sale(int seat) {
    run("INSERT OR REPLACE INTO seats (id) VALUES (" + std::to_string(seat) + ")");
  }

  // Raises the fence before anything is read: from here on no earlier holder
  // can change what we see. False if a later holder was here before us.
  bool enter(int seat, std::uint64_t token) {
    return write("UPDATE seats SET fence = ?2 WHERE id = ?1 AND fence <= ?2", seat, token, "");
  }

  std::string buyer(int seat) {
    sqlite3_stmt* query = prepare("SELECT buyer FROM seats WHERE id = ?1");
    sqlite3_bind_int(query, 1, seat);
    std::string found;
    if (sqlite3_step(query) == SQLITE_ROW) {
      found = reinterpret_cast<const char*>(sqlite3_column_text(query, 0));
    }
    sqlite3_finalize(query);
    return found;
  }

  // The fenced write: refused when a later holder was here.
  bool sell(int seat, const std::string& to, std::uint64_t token) {
    return write("UPDATE seats SET fence = ?2, buyer = ?3 WHERE id = ?1 AND fence <= ?2", seat,
                 token, to);
  }

 private:
  void run(const std::string& sql) {
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error{sqlite3_errmsg(db_)};
    }
  }
  // True if the row passed the fence.
  bool write(const char* sql, int seat, std::uint64_t token, const std::string& buyer) {
    sqlite3_stmt* update = prepare(sql);
    sqlite3_bind_int(update, 1, seat);
    sqlite3_bind_int64(update, 2, static_cast<std::int64_t>(token));
    if (sqlite3_bind_parameter_count(update) == 3) {
      sqlite3_bind_text(update, 3, buyer.c_str(), -1, SQLITE_TRANSIENT);
    }
    const int result = sqlite3_step(update);
    sqlite3_finalize(update);
    if (result != SQLITE_DONE) {
      throw std::runtime_error{sqlite3_errmsg(db_)};
    }
    return sqlite3_changes(db_) == 1;
  }
  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql, -1, &statement, nullptr) != SQLITE_OK) {
      throw std::runtime_error{sqlite3_errmsg(db_)};
    }
    return statement;
  }

  sqlite3* db_ = nullptr;
};

holdfast::Client open_store() {
  auto client = holdfast::Client::open("sqlite:locks.db", {.label = "seat-server"});
  if (!client) {
    throw holdfast::LockError{client.error()};
  }
  return std::move(*client);
}

std::string lock_of(int seat) {
  return "seat:" + std::to_string(seat);
}

// True if this customer got the seat.
bool book(holdfast::Client& client, SeatTable& table, int seat, const std::string& customer) {
  auto lease = client.acquire(lock_of(seat), {.ttl = 5s, .wait = 10s, .require_token = true});
  if (!lease) {
    throw holdfast::LockError{lease.error()};
  }
  const std::uint64_t token = *lease->token();
  if (!table.enter(seat, token) || !table.buyer(seat).empty()) {
    return false;
  }
  std::this_thread::sleep_for(5ms);  // the payment
  return table.sell(seat, customer, token);
}

// Each server asks for every seat. Returns how many sales there were.
int rush(int servers) {
  std::atomic<int> sales = 0;
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(servers));
  for (int server = 0; server < servers; ++server) {
    threads.emplace_back([server, &sales] {
      holdfast::Client client = open_store();
      SeatTable table;
      for (int seat = 1; seat <= kSeats; ++seat) {
        sales += book(client, table, seat, "customer of server " + std::to_string(server)) ? 1 : 0;
      }
    });
  }
  threads.clear();  // joins
  return sales;
}

// True if the write of the server that slept too long was refused.
bool stale_write_is_refused() {
  constexpr int kSeat = kSeats + 1;
  SeatTable table;
  table.put_up_for_sale(kSeat);
  holdfast::Client first = open_store();
  holdfast::Client second = open_store();

  // renew = false stands for a process that is frozen: nobody renews for it.
  auto frozen = first.acquire(lock_of(kSeat), {.ttl = 300ms, .renew = false});
  if (!frozen || !table.enter(kSeat, *frozen->token()) || !table.buyer(kSeat).empty()) {
    return false;
  }
  if (!book(second, table, kSeat, "Grace")) {  // waits until the store takes the lock back
    return false;
  }
  const bool stale_sale = table.sell(kSeat, "Ada", *frozen->token());
  return !stale_sale && table.buyer(kSeat) == "Grace";
}

}  // namespace

int main() {
  SeatTable table;
  for (int seat = 1; seat <= kSeats; ++seat) {
    table.put_up_for_sale(seat);
  }
  const int sales = rush(4);
  std::cout << "4 servers sold " << sales << " of " << kSeats << " seats\n";
  const bool refused = stale_write_is_refused();
  std::cout << "the frozen server's late sale was " << (refused ? "refused" : "accepted") << '\n';
  return sales == kSeats && refused ? 0 : 1;
}
