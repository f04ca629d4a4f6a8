// Some of many: workers that must not pick the same job.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "conformance/conformance.h"
#include "support/job_ledger.h"
#include "support/temp_dir.h"
#include "support/worker_process.h"

namespace holdfast::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ClaimAny : public Conformance {
 protected:
  std::vector<std::string> jobs(int count) const {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back(name() + "-" + std::to_string(i));
    return all;
  }
  static std::set<std::string> names_of(const std::vector<Lease>& leases) {
    std::set<std::string> names;
    for (const Lease& lease : leases) names.insert(lease.name());
    return names;
  }
};
HOLDFAST_RUN_ON(ClaimAny, harnesses());

TEST_P(ClaimAny, TakesThoseThatNobodyHolds) {
  auto one = open();
  auto other = open();
  const auto names = jobs(5);
  auto taken = one->acquire_all({names[1], names[3]});
  ASSERT_THAT(taken, IsOk());
  auto claimed = other->claim_any(names, 5);
  ASSERT_THAT(claimed, IsOk());
  EXPECT_EQ(names_of(*claimed), (std::set{names[0], names[2], names[4]}));
  for (const Lease& lease : *claimed) EXPECT_TRUE(lease.is_alive());
  auto nothing = open()->claim_any(names, 5);
  ASSERT_THAT(nothing, IsOk());
  EXPECT_THAT(*nothing, IsEmpty());
}

TEST_P(ClaimAny, TakesNoMoreThanAsked) {
  auto client = open();
  const auto names = jobs(8);
  auto first = client->claim_any(names, 3);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(names_of(*first), SizeIs(3));
  auto second = open()->claim_any(names, 4);
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(names_of(*second), SizeIs(4));
  // What was taken in excess is given back.
  auto last = client->claim_any(names, 8);
  ASSERT_THAT(last, IsOk());
  ASSERT_THAT(*last, SizeIs(1));
  std::set<std::string> all = names_of(*first);
  all.merge(names_of(*second));
  all.merge(names_of(*last));
  EXPECT_THAT(all, SizeIs(8));
}

TEST_P(ClaimAny, ThreadsOfOneProcessDoNotShareAJob) {
  auto client = open();
  const auto names = jobs(12);
  std::vector<std::future<std::vector<Lease>>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(in_background([&] { return *client->claim_any(names, 3); }));
  }
  std::vector<Lease> all;
  for (auto& thread : threads) std::ranges::move(thread.get(), std::back_inserter(all));
  EXPECT_THAT(names_of(all), SizeIs(all.size()));
  EXPECT_FALSE(all.empty());
}

TEST_P(ClaimAny, BadInputIsRefused) {
  auto client = open();
  const auto expect_refused = [&](const Result<std::vector<Lease>>& refused, const char* field) {
    ASSERT_THAT(refused, FailsWith(ErrorCode::invalid_argument));
    EXPECT_THAT(refused.error().text, HasSubstr(field));
  };
  expect_refused(client->claim_any({}), "names");
  expect_refused(client->claim_any({name(), name()}, 2), "names");
  expect_refused(client->claim_any({name(), ""}, 2), "name");
  expect_refused(client->claim_any({name()}, 0), "at_most");
  expect_refused(client->claim_any({name()}, 1, {.ttl = -1s}), "ttl");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(client->claim_any({name()}, 1, {.stop = stop.get_token()}),
              FailsWith(ErrorCode::cancelled));
  EXPECT_TRUE(await_nothing_left());
}

// Workers are killed at any point of their work; others take their jobs over.
class ClaimedJobs : public ClaimAny {
 protected:
  void work_off(int jobs, std::size_t workers, int kills, int at_once) {
    const TempDir dir;
    const std::string file = dir / "ledger";
    const JobLedger ledger{file};
    ledger.add(jobs);
    const std::string order = "jobs " + name() + "- " + file + " " + std::to_string(at_once) +
                              ttl_word(harness().renewable_ttl());
    const auto start = [&] {
      auto worker = std::make_unique<WorkerProcess>(harness().url());
      worker->send(order);
      return worker;
    };
    std::vector<std::unique_ptr<WorkerProcess>> crew;
    for (std::size_t i = 0; i < workers; ++i) crew.push_back(start());
    std::minstd_rand random{std::random_device{}()};
    for (int killed = 0; killed < kills; ++killed) {
      const auto goal = static_cast<std::size_t>(jobs - jobs * (killed + 1) / (kills + 1));
      ASSERT_TRUE(eventually([&] { return ledger.open_jobs().size() <= goal; }, 5min));
      auto& victim = crew[random() % crew.size()];
      victim->kill();
      victim = start();
    }
    for (auto& worker : crew) EXPECT_EQ(worker->answer(5min), "ok");
    const auto accepted = ledger.acceptances();
    EXPECT_THAT(accepted, SizeIs(static_cast<std::size_t>(jobs)));
    EXPECT_THAT(accepted, ::testing::Each(1));
  }
};
class ManyClaimedJobs : public ClaimedJobs {};
HOLDFAST_RUN_ON(ClaimedJobs, harnesses_with(&Claims::processes, &Claims::token));

std::vector<HarnessEntry> some_engines() {
  std::vector<HarnessEntry> some;
  for (const HarnessEntry& entry : harnesses()) {
    if (entry.label() == "sqlite" || entry.label() == "mysql_lease") some.push_back(entry);
  }
  return some;
}
HOLDFAST_RUN_ON(ManyClaimedJobs, some_engines());

TEST_P(ClaimedJobs, EachIsCompletedExactlyOnce) {
  work_off(90, 3, 2, 4);
}

TEST_P(ManyClaimedJobs, EachOfTenThousandIsCompletedExactlyOnceLongRun) {
  work_off(10'000, 16, 12, 20);
}

}  // namespace
}  // namespace holdfast::test
