#include "client/absence.h"

#include <gtest/gtest.h>

namespace holdfast::client {
namespace {

using namespace std::chrono_literals;

base::Time at(base::Duration since) {
  return base::Time{since};
}

TEST(Absence, CountsFromALookThatFoundNobodyToTheNext) {
  Absence absence;
  absence.saw_nobody(at(3s));
  EXPECT_EQ(absence.total(), 0s);
  absence.saw_nobody(at(4s));
  EXPECT_EQ(absence.total(), 1s);
}

TEST(Absence, EndsWhenTheNextLeaderBegan) {
  Absence absence;
  absence.saw_nobody(at(3s));
  absence.saw_leader(at(5s), at(9s));
  EXPECT_EQ(absence.total(), 2s) << "not when it was seen";
  absence.saw_leader(at(5s), at(20s));
  EXPECT_EQ(absence.total(), 2s);
  EXPECT_EQ(absence.unknown(), 0s);
}

TEST(Absence, IsNothingIfTheNextLedBeforeTheFirstWasDone) {
  Absence absence;
  absence.saw_nobody(at(3s));  // one that had lost the lock and went on for a while
  absence.saw_leader(at(2s), at(4s));
  EXPECT_EQ(absence.total(), 0s);
}

TEST(Absence, TellsWhatItCannotKnow) {
  Absence absence;
  absence.saw_leader(at(1s), at(2s));
  absence.saw_leader(at(6s), at(8s));  // another: the first ended at any time from 2 s to 6 s
  EXPECT_EQ(absence.unknown(), 4s);
  absence.saw_nobody(at(9s));  // ended at any time since 8 s
  EXPECT_EQ(absence.unknown(), 5s);
  EXPECT_EQ(absence.total(), 0s);
  absence.saw_nobody(at(12s));
  EXPECT_EQ(absence.total(), 3s);
  EXPECT_EQ(absence.unknown(), 5s);
}

}  // namespace
}  // namespace holdfast::client
