#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "proof/fault_proxy.h"

namespace holdfast::proof {

using ProxyClock = std::chrono::steady_clock;

// What the connections of one proxy obey, and what they count.
struct ProxyRules {
  struct OneWay {
    Duration delay{};
    bool blocked = false;
    std::optional<std::size_t> cut_after = std::nullopt;
    std::uint64_t bytes = 0;
  };
  std::array<OneWay, 2> ways;
  std::optional<Swallow> swallow;
  std::string shunned;  // who says so is cut off
  std::uint64_t swallowed = 0;
  std::uint64_t cuts = 0;

  OneWay& of(Way way) { return ways.at(static_cast<std::size_t>(way)); }
};

// One connection through the proxy: what is under way in each direction. Not
// thread-safe; never blocks.
class ProxyConnection {
 public:
  ProxyConnection(base::FileDescriptor client, const sockaddr_storage& target, socklen_t length);

  // Moves what may be moved. False: it is over.
  bool step(ProxyRules& rules, ProxyClock::time_point now);

  void add_interest(const ProxyRules& rules, std::vector<pollfd>& polled) const;
  // When a delayed byte is due next.
  ProxyClock::time_point next_due(const ProxyRules& rules) const;

  // Both sides are reset when the connection is destroyed.
  void reset() noexcept;
  bool is_mute() const noexcept { return mute_; }

 private:
  struct Chunk {
    std::string bytes;
    ProxyClock::time_point due;
    std::optional<Swallow::Then> swallows = std::nullopt;  // the reply to it is lost
    bool end = false;                                      // the sender has closed its side
  };
  struct Pipe {
    Way way;
    std::deque<Chunk> chunks{};
    std::size_t size = 0;
    std::string tail{};  // of what was read: a pattern may span two reads
    bool read_all = false;
    bool done = false;

    bool full() const noexcept;
  };

  bool connect_target();
  bool is_blocked(Way way, const ProxyRules& rules) const;
  bool read(Pipe& pipe, int from, ProxyRules& rules, ProxyClock::time_point now);
  bool write(Pipe& pipe, int to, ProxyRules& rules, ProxyClock::time_point now);
  bool take(Pipe& pipe, std::string bytes, ProxyRules& rules, ProxyClock::time_point now);
  static std::optional<Swallow::Then> match(Pipe& pipe, const std::string& bytes,
                                            ProxyRules& rules);

  base::FileDescriptor client_;
  base::FileDescriptor target_;
  sockaddr_storage address_;
  socklen_t address_length_;
  std::string first_words_;  // of the client
  bool mute_ = false;
  bool cut_on_answer_ = false;
  Pipe requests_{.way = Way::to_store};
  Pipe replies_{.way = Way::from_store};
};

}  // namespace holdfast::proof
