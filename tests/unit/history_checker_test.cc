// The judge is judged first: a good history passes, and for every property
// there are histories that break it and no other.

#include <gtest/gtest.h>

#include <chrono>

#include "proof/checker.h"
#include "proof/timeline.h"
#include "unit/history_builder.h"

namespace holdfast::proof {
namespace {

using namespace std::chrono_literals;

using Builder = HistoryBuilder;

TEST(HistoryChecker, AcceptsWhatIsRight) {
  Builder run;
  run.enter('A', 64).look('A').write('A').call('B').look('A').leave('A').grant('B', 128);
  run.nest('B', 128).write('B').look('B').leave('B');
  run.as(Mode::shared).enter('A', 192).enter('B', 256).look('A').look('B').leave('A').leave('B');
  run.as(Mode::permits, 1, 2).enter('A', 320).enter('B', 384).look('A').look('B');
  run.leave('A').enter('C', 448).look('B').look('C').leave('B').leave('C');
  EXPECT_EQ(run.verdict(), "");
}

TEST(HistoryChecker, AnEmptyHistoryIsFine) {
  EXPECT_EQ(Builder{}.verdict(), "");
}

// --- S1

TEST(HistoryChecker, S1AStaleWriteWasAccepted) {
  Builder run;
  run.enter('A', 64).pass(2s).enter('B', 128).write('B').write('A').fail_to_leave(
      'A', ErrorCode::lease_lost);
  run.leave('B');
  EXPECT_EQ(run.verdict(), "S1");
}

TEST(HistoryChecker, S1AHolderWasTurnedAway) {
  Builder run;
  run.enter('A', 64).write('A', EventKind::turned_away).look('A').leave('A');
  EXPECT_EQ(run.verdict(), "S1");
}

TEST(HistoryChecker, S1AStaleHolderIsTurnedAway) {
  Builder run;
  run.enter('A', 64).look('A').pass(2s).enter('B', 128).write('B');
  run.write('A', EventKind::turned_away).fail_to_leave('A', ErrorCode::lease_lost).leave('B');
  EXPECT_EQ(run.verdict(), "");
}

TEST(HistoryChecker, S1TwoOwnersWroteWithOneToken) {
  Builder run;
  run.enter('A', 64).write('A').leave('A').enter('B', 64).write('B').leave('B');
  EXPECT_EQ(run.verdict(), "S1 S3");
}

// --- S2

TEST(HistoryChecker, S2TwoWritersAtOnce) {
  Builder run;
  run.enter('A', 64).look('A').pass(2s).enter('B', 128).look('A').look('B');
  run.fail_to_leave('A', ErrorCode::lease_lost).leave('B');
  EXPECT_EQ(run.verdict(), "S2");
}

TEST(HistoryChecker, S2AReaderBesideAWriter) {
  Builder run;
  run.enter('A', 64).pass(2s).as(Mode::shared).enter('B', 128).look('A').look('B');
  run.fail_to_leave('A', ErrorCode::lease_lost).leave('B');
  EXPECT_EQ(run.verdict(), "S2");
}

TEST(HistoryChecker, S2OnePermitTooMany) {
  Builder run;
  run.as(Mode::permits, 2, 3).enter('A', 64).pass(2s).enter('B', 128).look('A').look('B');
  run.leave('A').leave('B');
  EXPECT_EQ(run.verdict(), "S2");
}

// --- S3

TEST(HistoryChecker, S3ATokenFell) {
  Builder run;
  run.enter('A', 128).look('A').leave('A').enter('B', 64).look('B').leave('B');
  EXPECT_EQ(run.verdict(), "S3");
}

TEST(HistoryChecker, S3AReadersTokenIsBelowTheWriterBefore) {
  Builder run;
  run.enter('A', 128).look('A').leave('A').as(Mode::shared).enter('B', 64).look('B').leave('B');
  EXPECT_EQ(run.verdict(), "S3");
}

TEST(HistoryChecker, S3AWritersTokenIsBelowTheReaderBefore) {
  Builder run;
  run.as(Mode::shared).enter('A', 128).look('A').leave('A');
  run.as(Mode::exclusive).enter('B', 64).look('B').leave('B');
  EXPECT_EQ(run.verdict(), "S3");
}

TEST(HistoryChecker, S3ReadersNeedNoOrderAmongThemselves) {
  Builder run;
  run.as(Mode::shared).enter('A', 128).look('A').enter('B', 64).look('B').leave('A').leave('B');
  EXPECT_EQ(run.verdict(), "");
}

TEST(HistoryChecker, S3TheSameTokenTwice) {
  Builder run;
  run.as(Mode::shared).enter('A', 64).leave('A').enter('B', 64).leave('B');
  EXPECT_EQ(run.verdict(), "S3");
}

TEST(HistoryChecker, S3TheTokenChangesOnReentry) {
  Builder run;
  run.enter('A', 64).nest('A', 128).leave('A');
  EXPECT_EQ(run.verdict(), "S3");
}

TEST(HistoryChecker, S3ATokenBelowAnEarlierRun) {
  Builder run;
  run.enter('A', 64).leave('A');
  EXPECT_EQ(run.verdict({.token_floor = {{0, 64}}}), "S3");
  EXPECT_EQ(run.verdict({.token_floor = {{0, 63}, {1, 1000}}}), "");
}

// --- S4

TEST(HistoryChecker, S4ALostLockSeemsToBeReleased) {
  Builder run;
  run.enter('A', 64).look('A').pass(2s).enter('B', 128).look('B').leave('A').leave('B');
  EXPECT_EQ(run.verdict(), "S4");
}

TEST(HistoryChecker, S4SaysNothingOfPermits) {
  Builder run;
  run.as(Mode::permits, 1, 2).enter('A', 64).enter('B', 128).look('B').leave('A').leave('B');
  EXPECT_EQ(run.verdict(), "");
}

// --- S5

TEST(HistoryChecker, S5ALeaseAfterTheRefusal) {
  Builder run;
  run.call('A').note('A', EventKind::cancelling).refuse('A', ErrorCode::cancelled).grant('A', 64);
  EXPECT_EQ(run.verdict(), "S5");
}

TEST(HistoryChecker, S5TimedOutTooEarly) {
  Builder run;
  run.call('A', 100ms).pass(50ms).refuse('A', ErrorCode::timed_out);
  EXPECT_EQ(run.verdict(), "S5");
  Builder punctual;
  punctual.call('A', 100ms).pass(100ms).refuse('A', ErrorCode::timed_out);
  EXPECT_EQ(punctual.verdict(), "");
}

TEST(HistoryChecker, S5CancelledByNobody) {
  Builder run;
  run.call('A').refuse('A', ErrorCode::cancelled);
  EXPECT_EQ(run.verdict(), "S5");
}

TEST(HistoryChecker, S5BusyThoughItShouldWait) {
  Builder run;
  run.call('A', 100ms).refuse('A', ErrorCode::busy);
  EXPECT_EQ(run.verdict(), "S5");
}

// --- S6

TEST(HistoryChecker, S6SomebodyEntersBeforeADeadHolderMayHaveEnded) {
  Builder run;
  run.enter('A', 64).kill('A').pass(500ms).enter('B', 128).leave('B');
  EXPECT_EQ(run.verdict(), "S6");
  Builder later;
  later.enter('A', 64).kill('A').pass(1s).enter('B', 128).leave('B');
  EXPECT_EQ(later.verdict(), "");
}

TEST(HistoryChecker, S6ARenewedLeaseLastsLonger) {
  Builder run;
  run.enter('A', 64).pass(600ms).look('A').kill('A').pass(600ms).enter('B', 128).leave('B');
  EXPECT_EQ(run.verdict(), "S6");
}

TEST(HistoryChecker, S6WhoWasToldOfTheLossCountsOnNothing) {
  Builder run;
  run.enter('A', 64)
      .note('A', EventKind::lost)
      .enter('B', 128)
      .leave('B')
      .fail_to_leave('A', ErrorCode::lease_lost);
  EXPECT_EQ(run.verdict(), "");
}

TEST(HistoryChecker, S6AGrantThatHasRunOutOnArrivalLetsNobodyIn) {
  Builder run;
  run.call('A').call('B').grant('B', 128).grant('A', 64, 0ms).note('A', EventKind::lost);
  run.fail_to_leave('A', ErrorCode::lease_lost).look('B').leave('B');
  EXPECT_EQ(run.verdict(), "");
}

TEST(HistoryChecker, S6ASessionEndsWithItsProcess) {
  Builder run;
  run.enter('A', 64).kill('A').pass(500ms).enter('B', 128).leave('B');
  EXPECT_EQ(run.verdict({.lease = false}), "");
  // The next one may be let in before we know that it is dead.
  Builder at_once;
  at_once.enter('A', 64).fault(EventKind::fault, Fault::kill, 'A').enter('B', 128).kill('A');
  at_once.fault(EventKind::mended, Fault::kill, 'A').leave('B');
  EXPECT_EQ(at_once.verdict({.lease = false}), "");
  EXPECT_EQ(at_once.verdict(), "S6");
}

TEST(HistoryChecker, S6PermitsAreCounted) {
  Builder run;
  run.as(Mode::permits, 1, 2).enter('A', 64).kill('A').enter('B', 128).enter('C', 192);
  run.leave('B').leave('C');
  EXPECT_EQ(run.verdict(), "S6");
}

// --- L1, L3

TEST(HistoryChecker, L1AFreeLockAndAWaiter) {
  Builder run;
  run.enter('A', 64).call('B').leave('A').pass(20s).grant('B', 128).leave('B');
  EXPECT_EQ(run.verdict(), "L1");
}

TEST(HistoryChecker, L1AWaiterThatTimesOutInFrontOfAFreeLock) {
  Builder run;
  run.enter('A', 64).call('B', 20s).leave('A').pass(20s).refuse('B', ErrorCode::timed_out);
  EXPECT_EQ(run.verdict(), "L1");
}

TEST(HistoryChecker, L1NobodyWaits) {
  Builder run;
  run.enter('A', 64).leave('A').pass(20s).enter('B', 128).leave('B');
  EXPECT_EQ(run.verdict(), "");
}

TEST(HistoryChecker, L1WhoWasStoppedIsToBlameItself) {
  Builder run;
  run.enter('A', 64).call('B').leave('A').fault(EventKind::fault, Fault::stop, 'B').pass(20s);
  run.fault(EventKind::mended, Fault::stop, 'B').pass(2s).grant('B', 128).leave('B');
  EXPECT_EQ(run.verdict(), "");
}

TEST(HistoryChecker, L1AnothersStopExcusesNobodyUnlessItHitsAll) {
  Builder run;
  run.enter('A', 64).call('B').leave('A').fault(EventKind::fault, Fault::stop, 'C').pass(20s);
  run.fault(EventKind::mended, Fault::stop, 'C').grant('B', 128).leave('B');
  EXPECT_EQ(run.verdict(), "L1");
  EXPECT_EQ(run.verdict({.stop_hits_all = true}), "");
}

TEST(HistoryChecker, L1AFaultThatHitsAllExcusesUntilItIsOver) {
  Builder run;
  run.enter('A', 64).call('B').leave('A').fault(EventKind::fault, Fault::partition).pass(20s);
  run.fault(EventKind::mended, Fault::partition).pass(1s).grant('B', 128).leave('B');
  EXPECT_EQ(run.verdict(), "");
  Builder too_long;
  too_long.enter('A', 64).call('B').leave('A').fault(EventKind::fault, Fault::partition);
  too_long.fault(EventKind::mended, Fault::partition).pass(20s).grant('B', 128).leave('B');
  EXPECT_EQ(too_long.verdict(), "L1");
}

TEST(HistoryChecker, L1ACallThatIsNeverAnswered) {
  Builder run;
  run.call('A');
  EXPECT_EQ(run.verdict(), "L1");
}

TEST(HistoryChecker, L1AnAnswerLongAfterTheWait) {
  Builder run;
  run.call('A', 1s).pass(8s).refuse('A', ErrorCode::timed_out);
  EXPECT_EQ(run.verdict(), "L1");
}

TEST(HistoryChecker, L1AReleaseThatNeverComesBack) {
  Builder run;
  run.enter('A', 64).note('A', EventKind::releasing);
  EXPECT_EQ(run.verdict(), "L1");
}

TEST(HistoryChecker, L3ADeadHoldersLockPassesOnTooLate) {
  Builder run;
  run.enter('A', 64).call('B').kill('A').pass(20s).grant('B', 128).leave('B');
  EXPECT_EQ(run.verdict(), "L3");
  Builder in_time;
  in_time.enter('A', 64).call('B').kill('A').pass(2s).grant('B', 128).leave('B');
  EXPECT_EQ(in_time.verdict(), "");
}

// --- L2

TEST(HistoryChecker, L2OvertakenByALatecomer) {
  Builder run;
  run.enter('A', 64).call('B').pass(8s).call('C').leave('A').grant('C', 128).leave('C');
  run.grant('B', 192).leave('B');
  EXPECT_EQ(run.verdict(), "L2");
  EXPECT_EQ(run.verdict({.fifo = false}), "");
}

TEST(HistoryChecker, L2WhoComesAtTheSameTimeMayBeFirst) {
  Builder run;
  run.enter('A', 64).call('B').call('C').pass(8s).leave('A').grant('C', 128).leave('C');
  run.grant('B', 192).leave('B');
  EXPECT_EQ(run.verdict(), "");
}

TEST(HistoryChecker, L2WhoWasStoppedMayBeOvertaken) {
  Builder run;
  run.enter('A', 64).call('B').fault(EventKind::fault, Fault::stop, 'B').pass(8s).call('C');
  run.leave('A').grant('C', 128).leave('C').fault(EventKind::mended, Fault::stop, 'B');
  run.grant('B', 192).leave('B');
  EXPECT_EQ(run.verdict(), "");
}

TEST(HistoryChecker, L2TooManyHandOversInARow) {
  Builder run;
  for (std::uint64_t i = 0; i <= 33; ++i) run.enter('A', 64 + i).leave('A');
  EXPECT_EQ(run.verdict(), "L2");
  EXPECT_EQ(run.verdict({.hand_over = 33}), "");
}

// --- L4

TEST(HistoryChecker, L4SomethingIsLeft) {
  Builder run;
  run.enter('A', 64).leave('A').note('A', EventKind::left_over);
  EXPECT_EQ(run.verdict(), "L4");
}

// --- what a person sees

TEST(HistoryChecker, ShowsOnlyTheEventsThatMatter) {
  Builder run;
  run.enter('C', 1).leave('C');
  run.enter('A', 64).look('A').look('A').look('A').pass(2s).enter('B', 128).look('A').look('B');
  run.fail_to_leave('A', ErrorCode::lease_lost).leave('B').enter('C', 192).leave('C');
  const auto violations = check(run.history(), {.ttl = Builder::kTtl});
  ASSERT_EQ(violations.size(), 1U);
  const std::string text = to_text(violations.front(), run.history());
  EXPECT_EQ(text.find("process 2"), std::string::npos) << text;
  EXPECT_NE(text.find("S2: too many hold lock 0 when call 1 of process 1 enters"),
            std::string::npos)
      << text;
  EXPECT_LE(violations.front().window.size(), 11U) << text;
  const std::string page = timeline_page(violations, run.history(), "a <run>");
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("a &lt;run&gt;"), std::string::npos);
  EXPECT_NE(page.find("class=\"hold\""), std::string::npos);
}

TEST(HistoryChecker, IsQuickOnAMillionEvents) {
  Builder run;
  std::uint64_t token = 64;
  for (int i = 0; i < 25'000; ++i) {
    for (const char who : {'A', 'B', 'C', 'D'}) {
      run.call(who).grant(who, token += 64).look(who).write(who).look(who).leave(who);
    }
  }
  EXPECT_EQ(run.verdict(), "");
}

}  // namespace
}  // namespace holdfast::proof
