#pragma once

#include <holdfast/error.h>
#include <holdfast/lease.h>
#include <holdfast/options.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {

class Client;

// One of several locks that are wanted together; see Client::acquire_all().
struct Want {
  Want(const char* lock) : name{lock} {}  // NOLINT: {"a", "b"} is a list of wants
  Want(std::string lock) noexcept : name{std::move(lock)} {}  // NOLINT: the same
  // `how_many` of `total`: Mode::permits only.
  Want(std::string lock, Mode how, std::uint32_t how_many = 1, std::uint32_t total = 0)
      : name{std::move(lock)}, mode{how}, permits{how_many}, of{total} {}

  std::string name;
  std::optional<Mode> mode;  // empty: as the options say
  std::uint32_t permits = 1;
  std::uint32_t of = 0;
};

// A lock in one of several stores.
struct WantAt {
  Client* client = nullptr;
  Want want;
};

// Ownership of several locks at once, until all are released or any is lost.
// Movable, bound to no thread. Not thread-safe, except is_alive(), lost() and
// loss().
class LeaseSet {
 public:
  LeaseSet() noexcept;  // holds nothing
  explicit LeaseSet(std::vector<Lease> leases);
  LeaseSet(LeaseSet&&) noexcept;
  LeaseSet& operator=(LeaseSet&&) noexcept;  // releases what it held, like ~LeaseSet
  LeaseSet(const LeaseSet&) = delete;
  LeaseSet& operator=(const LeaseSet&) = delete;
  ~LeaseSet();  // Releases in the background; call release() to learn the outcome.

  // In the order in which the caller named them.
  std::size_t size() const noexcept;
  const Lease& operator[](std::size_t index) const;
  const std::vector<Lease>& leases() const noexcept;
  // The first of that name; null if there is none.
  const Lease* find(std::string_view name) const noexcept;

  // All of them are.
  bool is_alive() const noexcept;
  // Of the one that ends first.
  Duration remaining() const noexcept;
  // Requested once, as soon as one of them is lost or about to be.
  std::stop_token lost() const noexcept;
  // Of the first that has one, in their order.
  std::optional<LossReason> loss() const noexcept;

  // Releases all and waits for all answers. Idempotent. lease_lost: at least
  // one was lost. Else the first error, as Lease::release().
  Result<void> release();
  void release_in_background() noexcept;

  // The leases one by one; the set is empty afterwards.
  std::vector<Lease> take() &&;

 private:
  class Watch;
  std::vector<Lease> leases_;
  std::unique_ptr<Watch> watch_;
};

// Client::acquire_all() over several stores. Every caller must get in the same
// order what it wants, by whatever URL it came to the stores: they are ordered
// by an id that each keeps. unsupported: a store has none. The waiting is that
// of Client::acquire_all().
Result<LeaseSet> acquire_all(const std::vector<WantAt>& wants, const AcquireOptions& options = {});

}  // namespace holdfast
