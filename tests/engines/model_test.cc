// Engines against the lock record: random batches of several engine instances
// on one store, time included, and every outcome compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "core/lock_record.h"
#include "engine/describe.h"
#include "support/engine_driver.h"
#include "support/eventually.h"
#include "support/random_commands.h"
#include "support/stores.h"

namespace holdfast {
namespace {

using namespace test;
using core::Outcome;

constexpr std::uint32_t kSessions = 3;

// What a store should do.
class Model {
 public:
  Outcome apply(const core::Command& command, base::Time now, std::vector<core::Wake>& wakes) {
    return records_[command.name].apply(command.operation, {.now = now, .token_floor = 1}, wakes);
  }

  std::vector<LockInfo> list(base::Time now) const {
    std::vector<LockInfo> all;
    for (const auto& [name, record] : records_) {
      auto info = engine::describe(name, record, now, [](const core::SessionId& session) {
        return Party{.label = "test " + std::to_string(session.bytes[0]), .host = "", .pid = 0};
      });
      if (!info.holders.empty() || !info.queue.empty()) {
        all.push_back(std::move(info));
      }
    }
    return all;
  }

 private:
  std::map<std::string, core::LockRecord> records_;
};

// An engine's tokens may be larger than the model's, but must stand for the
// same grants in the same order.
class TokenMap {
 public:
  bool same(std::uint64_t model, std::uint64_t engine) {
    if (model == 0 || engine == 0) {
      return model == engine;
    }
    const auto [place, added] = known_.try_emplace(model, engine);
    if (!added) {
      return place->second == engine;
    }
    const bool above_lower =
        place == known_.begin() || std::prev(place)->second + core::kTokenStride <= engine;
    const auto higher = std::next(place);
    return above_lower && (higher == known_.end() || engine + core::kTokenStride <= higher->second);
  }

 private:
  std::map<std::uint64_t, std::uint64_t> known_;
};

class EngineModel : public ::testing::TestWithParam<std::string> {
 protected:
  void run(std::uint64_t seed, int batches) {
    RandomCommands random{seed, kSessions, true};
    const TempDir dir;
    url_ = store_url(GetParam(), dir);
    for (std::uint32_t session = 1; session <= kSessions; ++session) {
      reopen(session);
    }
    for (int i = 0; i < batches && !HasFailure(); ++i) {
      now_ += random.pause();
      SCOPED_TRACE("seed " + std::to_string(seed) + ", batch " + std::to_string(i));
      const std::uint32_t session = random.session();
      submit_both(session, random.batch(session));
      compare_rings();
      keep_house(random);
    }
    engines_.clear();
    tokens_.clear();
    model_ = {};
  }

 private:
  void reopen(std::uint32_t session) {
    engines_.erase(session);
    engines_[session] = open_engine(url_, session, [this] { return now_; });
    // Whoever asks how it stands listens for the bell from then on.
    submit(*engines_[session], "nobody's", poll(session));
  }

  void submit_both(std::uint32_t session, const std::vector<core::Command>& batch) {
    const auto outcomes = submit(*engines_[session], batch);
    ASSERT_EQ(outcomes.size(), batch.size());
    wakes_.clear();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Outcome expected = model_.apply(batch[i], now_, wakes_);
      const Outcome& got = outcomes[i];
      SCOPED_TRACE("command " + std::to_string(i) + ", kind " +
                   std::to_string(batch[i].operation.index()) + ", " + batch[i].name);
      EXPECT_EQ(got.status, expected.status) << (got.error ? got.error->text : "");
      seen_.insert(expected.status);
      EXPECT_EQ(got.lease_for, expected.lease_for);
      EXPECT_EQ(got.look_again, expected.look_again);
      EXPECT_EQ(got.ahead, expected.ahead);
      EXPECT_EQ(got.count, expected.count);
      EXPECT_EQ(got.gave_back, expected.gave_back);
      EXPECT_TRUE(tokens_[batch[i].name].same(expected.token, got.token))
          << expected.token << " is " << got.token;
    }
  }

  void compare_rings() {
    std::map<core::SessionId, std::vector<core::RequestId>> expected;
    for (const core::Wake& wake : wakes_) {
      expected[wake.session].push_back(wake.id);
    }
    for (auto& [session, engine] : engines_) {
      const auto& wanted = expected[id(session)];
      std::vector<core::RequestId> rung;
      // A server's rings may come a moment after its answer. To ring twice, or
      // for nothing, is allowed where no token is promised with it.
      eventually([&] {
        for (const engine::Ring& ring : engine->answer_doorbell()) {
          const bool asked = std::find(wanted.begin(), wanted.end(), ring.id) != wanted.end();
          const bool again = std::find(rung.begin(), rung.end(), ring.id) != rung.end();
          if ((asked && !again) || ring.token != 0) {
            rung.push_back(ring.id);
          }
        }
        return rung.size() >= wanted.size();
      });
      EXPECT_THAT(rung, ::testing::UnorderedElementsAreArray(wanted))
          << "doorbell of session " << session;
    }
  }

  void keep_house(RandomCommands& random) {
    switch (random.below(12)) {
      case 0:
        engines_[random.session()]->tidy();
        break;
      case 1:
        engines_[random.session()]->may_have_changed();
        break;
      case 2:
        compare_lists(*engines_[random.session()]);
        break;
      case 3:
        // A new doorbell there knows nothing of what the old one waited for.
        if (random.below(5) == 0 && !GetParam().starts_with("mysql")) {
          reopen(random.session());
        }
        break;
      default:
        break;
    }
  }

  void compare_lists(engine::Engine& engine) {
    const auto got = engine.list("");
    ASSERT_TRUE(got) << got.error();
    EXPECT_EQ(written(*got), written(model_.list(now_)));
  }

  static std::string written(const std::vector<LockInfo>& locks) {
    std::ostringstream out;
    for (const LockInfo& lock : locks) {
      out << lock.name << " of " << lock.limit << '\n';
      for (const HolderInfo& holder : lock.holders) {
        out << "  held by " << holder.party.label << ' ' << to_string(holder.mode) << ' '
            << holder.permits << ' ' << holder.held_for.count() << ' ' << holder.expires_in.count()
            << (holder.revoked ? " revoked" : "") << '\n';
      }
      for (const WaiterInfo& waiter : lock.queue) {
        out << "  awaited by " << waiter.party.label << ' ' << to_string(waiter.mode) << ' '
            << waiter.permits << ' ' << waiter.waiting_for.count() << '\n';
      }
    }
    return out.str();
  }

  std::string url_;
  base::Time now_ = at(0s);
  Model model_;
  std::map<std::uint32_t, std::unique_ptr<engine::Engine>> engines_;
  std::map<std::string, TokenMap> tokens_;
  std::vector<core::Wake> wakes_;

 protected:
  std::set<core::Status> seen_;
};

TEST_P(EngineModel, AnswersLikeTheLockRecord) {
  const bool quick = std::getenv("HOLDFAST_QUICK") != nullptr;
  const std::uint64_t seeds = GetParam().starts_with("mysql") ? (quick ? 1 : 5) : (quick ? 5 : 25);
  for (std::uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    run(seed, GetParam() == "postgres" ? 150 : 400);
  }
  if (quick) {
    return;
  }
  using enum core::Status;  // nothing was left out
  EXPECT_THAT(seen_, ::testing::ElementsAre(granted, queued, busy, renewed, released, done,
                                            not_held, revoked, refused));
}

INSTANTIATE_TEST_SUITE_P(, EngineModel, ::testing::ValuesIn(engines_of_the_record()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace holdfast
