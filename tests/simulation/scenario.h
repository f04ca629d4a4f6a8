#pragma once

#include <holdfast/options.h>
#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace holdfast::sim {

using base::Duration;

enum class Kind : std::uint8_t { mutex, shared_mutex, semaphore };

inline constexpr std::uint32_t kMostPermits = 4;  // of a semaphore, also after a resize

struct NamedLock {
  std::string name;
  Kind kind = Kind::mutex;
  std::uint32_t limit = 0;
};

// Everything that a seed decides before the run starts. Each kind of trouble is
// absent in many seeds: rare troubles show best when others do not cover them.
// Chances are in permille.
struct Scenario {
  std::uint64_t seed = 0;

  int processes = 1;
  int users = 1;  // in each process
  int cycles = 4;
  std::vector<NamedLock> locks;
  std::size_t lanes = 1;
  Duration length{};  // no new acquires and no new faults after this

  Duration ttl{};  // most users'; others half or twice of it
  Duration backstop{};
  Duration patience{};
  Duration request_timeout{};

  // The store and its doorbell
  bool pushes_tokens = true;
  bool counts_changes = false;  // may_have_changed() says no where it can
  bool tidies = false;          // settles and forgets by itself now and then
  bool forgets_at_once = true;  // names that are idle; else when it tidies

  // Network
  Duration delay{};  // one way, at most
  int request_lost = 0;
  int reply_lost = 0;
  int refused = 0;  // fails for certain
  int ghost = 0;    // arrives after the client gave up
  int partial = 0;  // only the first commands of a batch are applied
  int spike = 0;
  Duration longest_spike{};
  Duration longest_ghost{};
  int ring_lost = 0;
  int ring_twice = 0;
  int ring_late = 0;
  Duration latest_ring{};
  int ring_without_token = 0;

  // Processes
  int crashes = 0;  // how often in the run
  int pauses = 0;
  Duration longest_pause{};
  int partitions = 0;
  Duration longest_partition{};
  int outages = 0;
  Duration longest_outage{};
  int keeper_late = 0;
  Duration latest_keeper{};
  int lazy_send = 0;     // commands gather before they are sent
  int slow_to_tell = 0;  // threads come late to what they are told
  int drift_ppm = 0;

  // Users
  int tries = 0;
  int timed = 0;
  int cancels = 0;
  int barging = 0;
  int not_renewed = 0;
  int max_hold = 0;
  int other_ttl = 0;
  int health = 0;
  int nested = 0;
  int stubborn = 0;  // go on for a while after lost()
  int wrong_limit = 0;
  int wrong_kind = 0;
  int long_hold = 0;
  int asks_for_answer = 0;
  std::vector<std::uint32_t> hand_overs;
  int admin_acts = 0;
  int strays = 0;      // commands with ids that nobody has
  int upgrades = 0;    // readers that want to write
  int downgrades = 0;  // writers that go on as readers
  int transfers = 0;   // leases that are handed to somebody else

  Duration longest_ttl() const noexcept { return ttl * 2; }
  // Nothing ever delays or loses a message, a tick or a process.
  bool calm() const noexcept;
  bool rings_well() const noexcept { return ring_lost + ring_late == 0; }
  // Round trips are nothing beside the leases.
  bool quick_for(Duration lease) const noexcept { return delay * 140 <= lease; }
};

Scenario draw_scenario(std::uint64_t seed);

}  // namespace holdfast::sim
