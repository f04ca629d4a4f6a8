#include "simulation/scenario.h"

#include <algorithm>

#include "simulation/random.h"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

// A trouble that most seeds do not have.
int sometimes(Random& dice, int one_in, int most) {
  return dice.below(static_cast<std::uint64_t>(one_in)) == 0 ? dice.between(1, most) : 0;
}

void draw_locks(Scenario& it, Random& dice) {
  const int count = dice.pick({1, 1, 2, 3});
  for (int i = 0; i < count; ++i) {
    const Kind kind = dice.pick({Kind::mutex, Kind::mutex, Kind::shared_mutex, Kind::semaphore});
    const auto limit = static_cast<std::uint32_t>(dice.between(1, int{kMostPermits}));
    it.locks.push_back(
        {std::string(1, static_cast<char>('a' + i)), kind, kind == Kind::semaphore ? limit : 0});
  }
}

void draw_network(Scenario& it, Random& dice) {
  it.delay = dice.between(it.ttl / 2000, dice.below(8) == 0 ? it.ttl / 4 : it.ttl / 60);
  it.request_timeout = it.delay * 4 + dice.between(it.ttl / 20, it.ttl);
  it.request_lost = sometimes(dice, 3, 120);
  it.reply_lost = sometimes(dice, 3, 120);
  it.refused = sometimes(dice, 5, 80);
  it.ghost = sometimes(dice, 3, 80);
  it.longest_ghost = it.request_timeout + dice.between(it.delay, it.ttl * 3);
  it.partial = sometimes(dice, 5, 80);
  it.spike = sometimes(dice, 4, 100);
  it.longest_spike = dice.between(it.delay, it.ttl);
  it.ring_lost = sometimes(dice, 3, 600);
  it.ring_twice = sometimes(dice, 4, 300);
  it.ring_late = sometimes(dice, 3, 300);
  it.latest_ring = dice.between(it.delay, it.ttl * 3);
  it.ring_without_token = sometimes(dice, 4, 500);
}

void draw_processes(Scenario& it, Random& dice) {
  it.crashes = sometimes(dice, 3, 4);
  it.pauses = sometimes(dice, 3, 5);
  it.longest_pause = dice.between(it.ttl / 10, it.ttl * 3);
  it.partitions = sometimes(dice, 4, 3);
  it.longest_partition = dice.between(it.ttl / 10, it.ttl * 3);
  it.outages = sometimes(dice, 5, 2);
  it.longest_outage = dice.between(it.ttl / 10, it.ttl * 2);
  it.keeper_late = sometimes(dice, 4, 300);
  it.latest_keeper = dice.between(it.ttl / 100, it.ttl);
  it.lazy_send = sometimes(dice, 3, 500);
  it.slow_to_tell = sometimes(dice, 4, 500);
  it.drift_ppm = dice.pick({0, 100, 9000});
}

void draw_users(Scenario& it, Random& dice) {
  it.tries = sometimes(dice, 2, 500);
  it.timed = sometimes(dice, 2, 500);
  it.cancels = sometimes(dice, 3, 400);
  it.barging = sometimes(dice, 4, 400);
  it.not_renewed = sometimes(dice, 4, 400);
  it.max_hold = sometimes(dice, 4, 400);
  it.other_ttl = sometimes(dice, 4, 300);
  it.health = sometimes(dice, 5, 400);
  it.nested = sometimes(dice, 3, 300);
  it.stubborn = sometimes(dice, 3, 400);
  it.wrong_limit = sometimes(dice, 6, 100);
  it.wrong_kind = sometimes(dice, 6, 100);
  it.long_hold = sometimes(dice, 2, 400);
  it.asks_for_answer = dice.pick({0, 300, 1000});
  it.hand_overs = dice.pick<std::vector<std::uint32_t>>(
      {{32}, {32}, {0}, {1}, {3}, {0, 32}, {0, 1, 3, 32, 63}});
  it.admin_acts = sometimes(dice, 4, 4);
  it.strays = sometimes(dice, 4, 5);
}

// By dice of their own: what else a seed means stays what it was.
void draw_changes(Scenario& it) {
  Random dice{~it.seed};
  it.upgrades = sometimes(dice, 2, 600);
  it.downgrades = sometimes(dice, 3, 500);
  it.transfers = sometimes(dice, 3, 400);
}

// Trouble of no kind: here the strictest promises can be checked.
void soothe(Scenario& it, bool with_bells) {
  if (with_bells) {
    it.ring_lost = it.ring_late = 0;
  }
  it.request_lost = it.reply_lost = it.refused = it.ghost = it.partial = it.spike = 0;
  it.crashes = it.pauses = it.partitions = it.outages = it.keeper_late = it.slow_to_tell = 0;
}

}  // namespace

bool Scenario::calm() const noexcept {
  return request_lost + reply_lost + refused + ghost + partial + spike + crashes + pauses +
             partitions + outages + keeper_late + slow_to_tell ==
         0;
}

Scenario draw_scenario(std::uint64_t seed) {
  Random dice{seed * 2 + 1};
  Scenario it;
  it.seed = seed;
  it.ttl = dice.pick<Duration>({60ms, 300ms, 1s, 4s});
  it.processes = dice.between(1, 5);
  it.users = dice.between(1, 5);
  it.cycles = dice.pick({2, 4, 8, 16});
  it.lanes = static_cast<std::size_t>(dice.between(1, 2));
  it.backstop = dice.between(it.ttl / 6, it.ttl * 2);
  it.patience = dice.between(it.ttl / 2, it.ttl * 4);
  it.length = it.ttl * dice.between(6, 24);
  it.pushes_tokens = dice.below(4) != 0;
  it.counts_changes = dice.coin();
  it.tidies = dice.coin();
  it.forgets_at_once = dice.coin();
  draw_locks(it, dice);
  draw_network(it, dice);
  draw_processes(it, dice);
  draw_users(it, dice);
  draw_changes(it);
  if (dice.below(6) == 0) {
    soothe(it, dice.coin());
  }
  return it;
}

}  // namespace holdfast::sim
