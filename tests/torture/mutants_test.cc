// The torture can fail: it finds what is wrong with engines that are wrong on
// purpose, through real processes and a real store.

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>

#include "support/process.h"
#include "support/temp_dir.h"

namespace holdfast::test {
namespace {

namespace bj = boost::json;
using namespace std::chrono_literals;

struct Mistake {
  const char* name;
  const char* what;
  const char* property;  // one of those that must notice it
};

constexpr std::array kMistakes{
    Mistake{"writer_as_reader", "takes a shared lock for an exclusive one", "S2"},
    Mistake{"permits_as_one", "whoever takes permits takes one", "S2"},
    Mistake{"lease_stretched", "believes in a lease for longer than it lasts", "S6"},
    Mistake{"renewal_pretended", "renewals are not sent", "S6"},
    Mistake{"token_constant", "every grant has the same token", "S3"},
    Mistake{"token_falls", "later grants have lower tokens", "S3"},
    Mistake{"blind_unlock", "frees the lock, whoever holds it, before taking it", "S2"},
    Mistake{"busy_as_granted", "a try always succeeds", "S2"},
};

class TortureMutants : public testing::TestWithParam<Mistake> {
 protected:
  // The properties that one short run found violated.
  std::set<std::string> found(int attempt) const {
    Process torture =
        Process::start({HOLDFAST_TORTURE_MUTANTS, "torture", "--json", "--seconds", "2", "--seed",
                        std::to_string(attempt), "--url", "sqlite:" + (dir_ / "locks.db").string(),
                        "--timeline", (dir_ / "timeline.html").string()},
                       {{"HOLDFAST_MISTAKE", GetParam().name}});
    const auto status = torture.wait(120s);
    EXPECT_TRUE(status == 0 || status == 1) << torture.err();
    std::set<std::string> properties;
    if (status == 1) {
      const bj::value report = bj::parse(torture.out());
      for (const bj::value& violation : report.at("violations").as_array()) {
        EXPECT_FALSE(violation.at("events").as_string().empty());
        properties.emplace(violation.at("property").as_string());
      }
      EXPECT_TRUE(std::filesystem::exists(dir_ / "timeline.html"));
    }
    return properties;
  }

  TempDir dir_;
};

TEST_P(TortureMutants, AreCaughtLongRun) {
  std::string others;
  for (int attempt = 1; attempt <= 15; ++attempt) {
    for (const std::string& property : found(attempt)) {
      if (property == GetParam().property) {
        if (std::getenv("HOLDFAST_MUTANT_TABLE") != nullptr) {
          std::cout << "mutant|" << GetParam().name << '|' << GetParam().what << "|torture, "
                    << property << ", run " << attempt << '\n';
        }
        return;
      }
      others += " " + property;
    }
  }
  std::cout << "survivor|" << GetParam().name << '\n';
  FAIL() << "nothing shows that " << GetParam().property << " is broken; found:" << others;
}

INSTANTIATE_TEST_SUITE_P(, TortureMutants, testing::ValuesIn(kMistakes),
                         [](const auto& which) { return std::string{which.param.name}; });

}  // namespace
}  // namespace holdfast::test
