#pragma once

#include <holdfast/error.h>
#include <holdfast/options.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::proof {

enum class Way : std::uint8_t { to_store, from_store };

// The reply to a request is lost: the request is forwarded, but of what the
// store says afterwards on that connection the client hears nothing.
struct Swallow {
  // Bytes of the request, also found across two packets. Empty: whatever is next.
  std::string pattern = {};
  enum class Then : std::uint8_t {
    silence,  // the connection stays open and mute until one side closes it
    cut,      // both sides are reset as soon as the store begins to answer
  };
  Then then = Then::silence;
  std::uint32_t times = 1;  // so many requests; 0: all
};

// A TCP line to one server that can be broken on purpose. Listens on a free
// port of 127.0.0.1 and forwards every connection to the target.
//
// A fault stays until it is taken back, or happens once where that is said.
// When a call returns, its effect is there: after block(w) no byte passes in
// that direction. Thread-safe. Not to be used in a forked child.
class FaultProxy {
 public:
  // The host is resolved once. unavailable: no such host, no port.
  static Result<std::unique_ptr<FaultProxy>> start(const std::string& host, std::uint16_t port);
  ~FaultProxy();  // resets what is open
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::uint16_t port() const noexcept;

  struct Address {
    std::string host;
    std::uint16_t port = 0;
  };
  // New connections go to these in turn: one, as an address that moves at a
  // fail-over; several, as a load balancer. unavailable: no such host.
  Result<void> retarget(const std::vector<Address>& targets);

  // Every byte that arrives from now on passes that much later; zero: at once.
  void delay(Way way, Duration time);

  // A black hole, as a partition is to TCP: nothing passes, nobody is told, and
  // what was sent meanwhile arrives when it ends. Both ways: call it twice. A
  // connection that is made while requests are blocked is accepted, and reaches
  // the target afterwards.
  void block(Way way);
  void unblock(Way way);

  // The same in both directions, for those clients alone whose first words (one
  // KiB) contain these bytes: one of several peers is cut off from the target,
  // the others are not. Empty: for nobody.
  void block_those_who_say(std::string words);

  // Resets (RST) all connections on both sides, with whatever is on its way.
  void reset_all();

  // Once: lets so many more bytes pass in that direction, over all connections
  // together, and resets the one that carried the last of them.
  void cut_after(Way way, std::size_t bytes);

  // New connections get ECONNREFUSED; those that exist stay.
  void refuse_connections();
  void accept_connections();

  void swallow_reply(Swallow swallow);
  void stop_swallowing();  // connections that are mute already stay so

  // Takes back everything; mute connections are reset.
  void heal();

  std::size_t connections() const;     // open now
  std::uint64_t accepted() const;      // ever
  std::uint64_t bytes(Way way) const;  // forwarded
  std::uint64_t swallowed() const;     // requests whose replies were lost
  std::uint64_t cuts() const;          // by cut_after() and Swallow::Then::cut

 private:
  class Impl;
  explicit FaultProxy(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::proof
