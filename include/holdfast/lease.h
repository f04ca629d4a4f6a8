#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace holdfast {

namespace client {
class LeaseHandle;  // what a Lease is made of; private to the library
class Guard;
class Several;
}  // namespace client

// Why lost() fired.
enum class LossReason : std::uint8_t {
  not_renewed,  // the deadline is near and no renewal succeeded
  expired,      // the store no longer knows the grant
  revoked,      // `holdfast release --force`; release soon to acknowledge it
};
std::string_view to_string(LossReason reason) noexcept;

// Ownership of one lock until release, loss or expiry. Movable, bound to no
// thread. Not thread-safe, except is_alive(), lost() and loss().
class Lease {
 public:
  Lease() noexcept;  // holds nothing
  explicit Lease(std::unique_ptr<client::LeaseHandle> handle) noexcept;
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;  // releases what it held, like ~Lease
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();  // Releases in the background; call release() to learn the outcome.

  // True while this object stands for a grant that was not released by it.
  explicit operator bool() const noexcept;

  const std::string& name() const noexcept;

  // Rises with every conflicting grant of this name. Hand it to the protected
  // resource, which alone can turn away a holder that lost its lease unawares.
  // Empty where the engine has none.
  std::optional<std::uint64_t> token() const noexcept;

  // Turns false, by the local boot-time clock, before the store expires us.
  bool is_alive() const noexcept;

  // Time until is_alive() turns false without a further renewal; zero if lost.
  Duration remaining() const noexcept;

  // Requested once, when the lease is lost or about to be; stop the work then.
  // Callbacks run on threads of the library that do nothing else.
  std::stop_token lost() const noexcept;
  std::optional<LossReason> loss() const noexcept;

  // Waits for the store's answer. Idempotent.
  // lease_lost: another owner may hold the lock already.
  // outcome_unknown: no reply; the lock frees itself at expiry.
  Result<void> release();

  // A reader (Mode::shared) becomes the writer, before all who wait, without
  // letting go in between: what it read is still true. The token rises. Waits
  // for the other readers to leave, and keeps new ones out: for ever, or as
  // `wait` says; zero not at all. On an error the lock is held as before, except
  // after lease_lost.
  // busy: another reader waits for the same (at once: one of the two must
  // release, or both wait for ever), or others read and wait is zero.
  // timed_out, cancelled; lease_lost; unsupported; outcome_unknown; unavailable:
  // also after an earlier outcome_unknown of this lease, which may come true late.
  Result<void> upgrade(std::optional<Duration> wait = std::nullopt,
                       const std::stop_token& stop = {});
  // The writer becomes a reader and lets other readers in; the token stays.
  // lease_lost; unsupported; unavailable: still the writer; outcome_unknown: a
  // reader, or perhaps still the writer.
  Result<void> downgrade();

  // Hands the lock to whoever calls Client::adopt() with the code, in this
  // process or another, as long as remaining() says now; nobody else can have it
  // in between. This lease then holds nothing. The code is a secret, and good
  // for one use. lease_lost; busy: other threads use the same grant; unsupported; unavailable.
  Result<std::string> give_away();

  // For data in the same database as the locks (postgres, mysql): a condition
  // for the WHERE of your own statements. It is true while this grant is the
  // current one, and no other can follow before your transaction ends. Asks the
  // store the first time. lease_lost, unsupported, unavailable. See also
  // guard() and guarded_commit() in <holdfast/mysql.h> and <holdfast/postgres.h>.
  Result<std::string> fence_sql() const;

  // Releases without waiting for the answer; a later acquire by this process
  // is ordered behind it.
  void release_in_background() noexcept;

 private:
  friend class Client;
  friend class client::Guard;
  friend class client::Several;
  std::unique_ptr<client::LeaseHandle> handle_;
};

}  // namespace holdfast
