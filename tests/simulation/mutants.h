#pragma once

#include <cstdint>
#include <span>

namespace holdfast::sim {

// Worlds that are wrong in one way each. The simulation must notice every one
// of them: a net that catches nothing is no net. The mistakes are made here, in
// the fake store and between the parts; the product has no switch for them.
enum class Mutant : std::uint8_t {
  none,
  // store_mutants.cc: the store
  release_by_anyone,
  expiry_ignored,
  token_forgotten,
  queue_jumped,
  renewal_revives,
  push_cut_short,
  full_ttl_repeated,
  overbooked,
  never_promotes,
  token_not_raised,
  token_by_one,
  writer_beside_readers,
  reader_beside_writer,
  reader_overtakes,
  permits_as_one,
  expires_early,
  renewal_ignored,
  renewal_by_stranger,
  waiters_immortal,
  heartbeat_ignored,
  requeue_first,
  requeue_keeps,
  acquire_anew,
  revoke_ignored,
  revoked_renewed,
  revoked_not_counted,
  wakes_lost,
  wakes_astray,
  busy_when_free,
  release_says_yes,
  release_says_no,
  lease_stretched,
  poll_prolongs,
  small_ones_first,
  pushed_too_long,
  readers_truncated,
  upgraded_beside_readers,
  upgrade_keeps_token,
  upgraders_both_wait,
  downgrade_ignored,
  transfer_keeps_token,
  transferred_twice,
  // client_mutants.cc: an engine
  validity_from_reply,
  unknown_as_unavailable,
  drift_ignored,
  partial_as_whole,
  // client_mutants.cc and process.cc: a client
  hand_over_unbounded,
  renews_unasked,
  max_hold_ignored,
  health_ignored,
  grace_ignored,
  writer_as_reader,
  permits_too_few,
  cancel_ignored,
  loss_untold,
  loss_told_twice,
  answer_lost,
  backstop_off,
  rings_ignored,
  no_patience,
  no_release,
  retried_as_new,
  ids_reused,
  keeper_asleep,
  renewing_ends,
  renews_after_loss,
  no_heartbeats,
};

struct MutantInfo {
  Mutant mutant;
  const char* name;
  const char* what;      // is wrong with it
  const char* property;  // the check that must notice it
};
std::span<const MutantInfo> all_mutants();

}  // namespace holdfast::sim
