#include "simulation/mutants.h"

#include <array>

namespace holdfast::sim {
namespace {

#define MUTANT(name) Mutant::name, #name
constexpr std::array kAll{
    // the store
    MutantInfo{MUTANT(release_by_anyone), "no owner check on release", "S2"},
    MutantInfo{MUTANT(expiry_ignored), "a dead holder holds for ever", "L4"},
    MutantInfo{MUTANT(token_forgotten), "tokens start again when a name was idle", "S1"},
    MutantInfo{MUTANT(queue_jumped), "the last to come is the first to be served", "L2"},
    MutantInfo{MUTANT(renewal_revives), "an expired lease comes back to life", "S6"},
    MutantInfo{MUTANT(push_cut_short), "a pushed grant lasts less than the window", "S6"},
    MutantInfo{MUTANT(full_ttl_repeated), "a grant asked about again seems as long as a new one",
               "S6"},
    MutantInfo{MUTANT(overbooked), "not all readers and permits are counted", "S2"},
    MutantInfo{MUTANT(never_promotes), "who waits is granted only when it asks anew", "L1"},
    MutantInfo{MUTANT(token_not_raised), "a grant has its predecessor's token", "S3"},
    MutantInfo{MUTANT(token_by_one), "no room for hand-overs between two tokens", "S3"},
    MutantInfo{MUTANT(writer_beside_readers), "a writer does not wait for readers", "S2"},
    MutantInfo{MUTANT(reader_beside_writer), "a reader does not wait for the writer", "S2"},
    MutantInfo{MUTANT(reader_overtakes), "readers are let in before a waiting writer", "L2"},
    MutantInfo{MUTANT(permits_as_one), "whoever takes permits takes one", "S2"},
    MutantInfo{MUTANT(expires_early), "the store ends leases at half time", "S6"},
    MutantInfo{MUTANT(renewal_ignored), "a renewal is confirmed but not kept", "S6"},
    MutantInfo{MUTANT(renewal_by_stranger), "no owner check on renewal", "S4"},
    MutantInfo{MUTANT(waiters_immortal), "dead waiters keep their place", "S5"},
    MutantInfo{MUTANT(heartbeat_ignored), "a heartbeat does not keep the place", "L2"},
    MutantInfo{MUTANT(requeue_first), "giving back and asking again jumps the queue", "L2"},
    MutantInfo{MUTANT(requeue_keeps), "asking again does not give back", "release"},
    MutantInfo{MUTANT(acquire_anew), "a repeated acquire is a new one", "S4"},
    MutantInfo{MUTANT(revoke_ignored), "a revocation is confirmed and forgotten", "revoke"},
    MutantInfo{MUTANT(revoked_renewed), "a revoked lease can be renewed", "revoke"},
    MutantInfo{MUTANT(revoked_not_counted), "who is revoked no longer excludes others", "S2"},
    MutantInfo{MUTANT(wakes_lost), "the store rings at nobody", "L1"},
    MutantInfo{MUTANT(wakes_astray), "the ring carries a wrong token", "S3"},
    MutantInfo{MUTANT(busy_when_free), "a try finds a free lock busy", "errors"},
    MutantInfo{MUTANT(release_says_yes), "releasing what is lost seems to succeed", "release"},
    MutantInfo{MUTANT(release_says_no), "a successful release seems too late", "release"},
    MutantInfo{MUTANT(lease_stretched), "the store promises more time than it gives", "S6"},
    MutantInfo{MUTANT(poll_prolongs), "looking prolongs the lease", "S4"},
    MutantInfo{MUTANT(small_ones_first), "small requests overtake a big one", "L2"},
    MutantInfo{MUTANT(pushed_too_long), "a pushed grant lasts its whole ttl at once", "S5"},
    MutantInfo{MUTANT(readers_truncated), "a short read lease cuts the others'", "S4"},
    MutantInfo{MUTANT(upgraded_beside_readers), "a reader becomes the writer beside others", "S2"},
    MutantInfo{MUTANT(upgrade_keeps_token), "a reader becomes the writer with its old token", "S3"},
    MutantInfo{MUTANT(upgraders_both_wait), "two readers wait for each other to become the writer",
               "L1"},
    MutantInfo{MUTANT(downgrade_ignored), "the writer stays the writer", "errors"},
    MutantInfo{MUTANT(transfer_keeps_token), "a lease passes on with its old token", "S3"},
    MutantInfo{MUTANT(transferred_twice), "a hand-over code is good for more than one", "S2"},
    // an engine
    MutantInfo{MUTANT(validity_from_reply), "validity counts from the reply, not the send", "S6"},
    MutantInfo{MUTANT(unknown_as_unavailable), "a lost reply is reported as 'nothing happened'",
               "S5"},
    MutantInfo{MUTANT(drift_ignored), "no margin for clocks of different speed", "S6"},
    MutantInfo{MUTANT(partial_as_whole), "a half-applied batch is reported as done", "S5"},
    // a client
    MutantInfo{MUTANT(hand_over_unbounded), "the lock is passed on more often than allowed", "L2"},
    MutantInfo{MUTANT(renews_unasked), "renews against the caller's will", "bounds"},
    MutantInfo{MUTANT(max_hold_ignored), "renews beyond max_hold", "bounds"},
    MutantInfo{MUTANT(health_ignored), "renews though the health check says no", "bounds"},
    MutantInfo{MUTANT(grace_ignored), "warns of the loss too late", "loss"},
    MutantInfo{MUTANT(writer_as_reader), "asks for a shared lock instead of an exclusive one",
               "S2"},
    MutantInfo{MUTANT(permits_too_few), "asks for fewer permits than the caller uses", "S2"},
    MutantInfo{MUTANT(cancel_ignored), "success though the wait was cancelled", "S5"},
    MutantInfo{MUTANT(loss_untold), "lost() does not fire", "loss"},
    MutantInfo{MUTANT(loss_told_twice), "lost() fires twice", "loss"},
    MutantInfo{MUTANT(answer_lost), "a release is never answered", "release"},
    MutantInfo{MUTANT(backstop_off), "no re-check after a lost wake-up", "L1"},
    MutantInfo{MUTANT(rings_ignored), "wake-ups are not listened to", "L1"},
    MutantInfo{MUTANT(no_patience), "gives up at the first unknown outcome", "errors"},
    MutantInfo{MUTANT(no_release), "the release is not sent", "S5"},
    MutantInfo{MUTANT(retried_as_new), "an unanswered acquire is repeated under a new id", "S5"},
    MutantInfo{MUTANT(ids_reused), "after a restart the old session's grant is trusted", "S3"},
    MutantInfo{MUTANT(keeper_asleep), "renewals and heartbeats come too late", "loss"},
    MutantInfo{MUTANT(renewing_ends), "one failed renewal ends renewing", "loss"},
    MutantInfo{MUTANT(renews_after_loss), "renews what lost() gave up", "loss"},
    MutantInfo{MUTANT(no_heartbeats), "waiters send no heartbeats", "L2"},
};
#undef MUTANT

}  // namespace

std::span<const MutantInfo> all_mutants() {
  return kAll;
}

}  // namespace holdfast::sim
