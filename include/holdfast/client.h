#pragma once

#include <holdfast/error.h>
#include <holdfast/inspect.h>
#include <holdfast/lease.h>
#include <holdfast/options.h>
#include <holdfast/several.h>
#include <holdfast/versioned.h>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

namespace client {
class Service;  // what a Client is made of; private to the library
class Several;
class Tasks;
}  // namespace client

// This process's door to one store. Thread-safe. Make one a process and store:
// all its locks and waiters share a small constant number of connections.
// After fork() the child's copies are inert; make a new Client there.
class Client {
 public:
  // "sqlite:/path/file.db", "memory:", ...; see docs/engines.
  // invalid_argument, unavailable, unauthorized.
  static Result<Client> open(std::string_view url, ClientOptions options = {});

  // Drains releases for at most 1 s. Leases outlive the Client that made them.
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Waits as long as options.wait says.
  // busy (wait = 0), timed_out, cancelled: nothing is held.
  // unavailable, outcome_unknown, invalid_argument, unsupported, unauthorized.
  Result<Lease> acquire(std::string_view name, const AcquireOptions& options = {});

  // acquire() with wait = 0.
  Result<Lease> try_acquire(std::string_view name, AcquireOptions options = {});

  // All of them or none. The order in which they are named does not matter:
  // two callers never wait for each other in a circle, as long as nobody waits
  // for further locks while it holds some of these. Options are those of each
  // lock; `wait` is for all together. While it waits for one, it holds only
  // those that come before it in the order of names.
  // invalid_argument: no names, or the same twice. Else as acquire().
  Result<LeaseSet> acquire_all(std::vector<Want> wants, const AcquireOptions& options = {});

  // Up to `at_most` of these locks, those that nobody holds: for workers that
  // must not pick the same job. Asks in random order, so that workers seldom
  // meet, and for many in one round trip. Empty if none is free. `wait` does
  // not apply. An error only if nothing was taken.
  Result<std::vector<Lease>> claim_any(const std::vector<std::string>& names,
                                       std::size_t at_most = 1, const AcquireOptions& options = {});

  // Acquires without blocking the caller. `done` is called exactly once, on any
  // thread that uses this client: it must not wait for the client or throw, but
  // may begin the next acquire or let the lease go. The wait ends early through
  // options.stop. The base of async_acquire.
  void acquire_then(std::string_view name, const AcquireOptions& options,
                    std::function<void(Result<Lease>)> done);

  // co_await client.async_acquire(name, options, boost::asio::use_awaitable);
  // defined in <holdfast/asio.h>, the only header that needs Boost.
  template <typename CompletionToken>
  auto async_acquire(std::string name, AcquireOptions options, CompletionToken&& token);

  // A value beside the locks, changed by comparing versions; <holdfast/versioned.h>.
  // Names are those of locks, but do not meet them; what begins with "holdfast:"
  // is reserved.
  Versioned versioned(std::string name);

  // Waits until the store has answered every release of this process.
  Result<void> flush(Duration at_most = std::chrono::seconds{10});

  const Capabilities& capabilities() const noexcept;

  // For people and tools: what the store knows.
  Result<std::vector<LockInfo>> list(std::string_view prefix = {});
  Result<LockInfo> show(std::string_view name);

  // How many holders were revoked or freed.
  Result<std::uint32_t> force_release(std::string_view name, Force how = Force::revoke);

  // Changes the total of a semaphore in use. Grants out above a smaller total
  // stay valid; new ones wait until there is room.
  Result<void> resize(std::string_view name, std::uint32_t total);

  // Creates what the store needs; harmless if it is there.
  Result<void> init();
  // The statements init() would run.
  Result<std::string> init_script();
  std::vector<Finding> doctor();

 private:
  friend class Mutex;
  friend class SharedMutex;
  friend class Semaphore;
  friend class client::Tasks;
  friend class Worker;
  friend class client::Several;
  explicit Client(std::shared_ptr<client::Service> service) noexcept;
  std::shared_ptr<client::Service> service_;
};

}  // namespace holdfast
