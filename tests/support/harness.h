#pragma once

#include <holdfast/client.h>
#include <holdfast/inspect.h>
#include <holdfast/lease.h>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

// What a harness says its engine can do, written by hand: a test compares it
// with what the engine declares, so that neither can quietly drop a promise.
struct Claims {
  bool token = true;      // fencing tokens
  bool fair = true;       // first come, first served
  bool shared = true;     // readers and writers
  bool permits = true;    // semaphores
  bool lease = true;      // a ttl of the caller's choice
  bool survives = true;   // a lock outlives the connection that took it, and needs none
  bool event = true;      // waiters are told; they need not ask
  bool processes = true;  // reachable from other processes, by url()
  bool outage = true;     // begin_outage() works
  bool values = false;    // versioned values and tasks
  bool upgrade = false;   // readers become writers and back
  bool transfer = false;  // leases pass to other processes
};

// While it lives, nobody can change anything at the store.
class Outage {
 public:
  virtual ~Outage() = default;
  Outage() = default;
  Outage(const Outage&) = delete;
  Outage& operator=(const Outage&) = delete;
};

// One store of one engine, made for one test and thrown away after it.
class Harness {
 public:
  virtual ~Harness() = default;
  Harness();
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  // How clients of this process, and of others where claims().processes, get here.
  virtual std::string url() const = 0;

  // A new Client, as different from the others as another process's. Throws
  // if the store cannot be opened.
  std::unique_ptr<Client> open(ClientOptions options = {}) const;
  // The same, but it takes a store for unavailable after that time, where it
  // would rather wait by default; a fraction of renewable_ttl().
  std::unique_ptr<Client> open_impatient(
      std::chrono::milliseconds timeout = std::chrono::milliseconds{300}) const;
  // One that only looks, and can during an outage, too.
  std::unique_ptr<Client> open_observer() const;

  // A name that nothing else uses. All start with name_prefix().
  std::string fresh_name();
  const std::string& name_prefix() const noexcept { return prefix_; }

  // For leases that are meant to run out: as short as the engine can.
  virtual Duration shortest_ttl() const { return std::chrono::milliseconds{100}; }
  // For leases that must live on renewals alone: short, but a busy machine
  // that stalls us for a while does not end it.
  virtual Duration renewable_ttl() const { return std::chrono::milliseconds{1500}; }

  // Waits until the store no longer counts the grant as held.
  void let_expire(const Lease& lease);

  // How many locks a client of url() may hold at the same time.
  virtual std::size_t most_at_once() const { return static_cast<std::size_t>(-1); }

  // Memory of this process that the store itself may fill up to a bound of its
  // own, as a page cache: no leak of ours.
  virtual std::size_t cache_bytes() const { return 0; }

  // For `holdfast torture`: its pace is that of leases that end by themselves.
  virtual std::string torture_url() const { return url(); }

  // Only where claims().outage.
  virtual std::string observer_url() const { return url(); }
  // With an option that ends with this, as "300ms".
  virtual std::string impatient_url(const std::string& /*timeout*/) const { return url(); }
  virtual std::unique_ptr<Outage> begin_outage() { return nullptr; }

 private:
  std::string prefix_;
  int names_ = 0;
  std::unique_ptr<Client> observer_;
};

// Outages concern a whole server: only the suites about them get one of their
// own, the others share one.
bool needs_own_server();

// Does this lock's record show the lease's grant, unexpired?
bool is_held(const LockInfo& info, const Lease& lease);

struct HarnessEntry {
  std::string_view engine;    // as Capabilities names them
  std::string_view strategy;  // "" where there is only one
  Claims claims;
  std::unique_ptr<Harness> (*make)();
  // What is not installed or not running; nullptr if the engine needs nothing.
  // Such tests are skipped on a developer's machine and fail under CI.
  std::optional<std::string> (*missing)() = nullptr;

  std::string label() const;  // "sqlite", "mysql_insert": part of the test's name
};
std::ostream& operator<<(std::ostream& out, const HarnessEntry& entry);

// All harnesses, and those that claim a promise or do not.
std::span<const HarnessEntry> harnesses();
std::vector<HarnessEntry> harnesses_with(bool Claims::*promise);
std::vector<HarnessEntry> harnesses_with(bool Claims::*one, bool Claims::*other);
std::vector<HarnessEntry> harnesses_without(bool Claims::*promise);

// One file an engine: support/harness_<engine>.cc.
HarnessEntry memory_harness();
HarnessEntry sqlite_harness();
HarnessEntry postgres_lease_harness();
HarnessEntry postgres_shedlock_harness();
HarnessEntry postgres_row_harness();
HarnessEntry postgres_advisory_harness();
HarnessEntry redis_fair_harness();
HarnessEntry mysql_lease_harness();
HarnessEntry mysql_shedlock_harness();
HarnessEntry mysql_insert_harness();
HarnessEntry mysql_timestamp_harness();
HarnessEntry mysql_slots_harness();
HarnessEntry mysql_status_harness();
HarnessEntry mysql_row_harness();
HarnessEntry mysql_upsert_harness();
HarnessEntry mysql_advisory_harness();
HarnessEntry redis_simple_harness();
HarnessEntry redis_redisson_harness();
HarnessEntry redlock_harness();
HarnessEntry zookeeper_harness();
HarnessEntry zookeeper_simple_harness();
HarnessEntry etcd_harness();

}  // namespace holdfast::test
