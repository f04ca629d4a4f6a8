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
  absence.saw(true, at(1s));
  absence.saw(false, at(3s));
  EXPECT_EQ(absence.total(), 0s);
  absence.saw(false, at(4s));
  EXPECT_EQ(absence.total(), 1s);
  absence.saw(true, at(6s));
  EXPECT_EQ(absence.total(), 3s);
  absence.saw(true, at(9s));
  EXPECT_EQ(absence.total(), 3s);
}

TEST(Absence, DoesNotCountWhatItCannotKnow) {
  Absence absence;
  absence.saw(false, at(1s));
  absence.forget();
  absence.saw(false, at(5s));
  absence.saw(true, at(6s));
  EXPECT_EQ(absence.total(), 1s);
}

}  // namespace
}  // namespace holdfast::client
