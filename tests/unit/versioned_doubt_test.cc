// A write whose answer does not come: what became of it?
#include <deque>
#include <functional>
#include <utility>

#include "client/values.h"
#include "unit/service_desk.h"

namespace holdfast::test {
namespace {

using core::ValueOutcome;

Error lost() {
  return {ErrorCode::outcome_unknown, "no answer", std::nullopt};
}
Error away() {
  return {ErrorCode::unavailable, "away", std::nullopt};
}

// A memory store whose answers to writes may get lost, each as the next of
// `steps` says; those that have none are answered.
class LossyEngine : public engine::Engine {
 public:
  struct Step {
    bool applied = true;
    std::optional<Error> told;
    std::function<void(engine::Engine& store)> then = nullptr;  // what others do meanwhile
  };

  LossyEngine(std::unique_ptr<engine::Engine> real, std::shared_ptr<std::deque<Step>> steps)
      : real_{std::move(real)}, steps_{std::move(steps)} {}

  const Capabilities& capabilities() const noexcept override { return real_->capabilities(); }
  void submit(std::size_t lane, std::span<const core::Command> batch, engine::Patience patience,
              engine::Done done) override {
    real_->submit(lane, batch, patience, std::move(done));
  }
  Result<std::vector<LockInfo>> list(std::string_view prefix) override {
    return real_->list(prefix);
  }
  Result<LockInfo> show(std::string_view name) override { return real_->show(name); }
  Result<void> init() override { return real_->init(); }
  Result<std::string> init_script() override { return real_->init_script(); }
  std::vector<Finding> doctor() override { return real_->doctor(); }
  Result<std::optional<core::Value>> load_value(std::string_view name) override {
    return real_->load_value(name);
  }

  Result<ValueOutcome> write_value(const core::ValueWrite& write) override {
    if (steps_->empty()) {
      return real_->write_value(write);
    }
    const Step step = std::move(steps_->front());
    steps_->pop_front();
    Result<ValueOutcome> outcome = ValueOutcome{};
    if (step.applied) {
      outcome = real_->write_value(write);
    }
    if (step.then) {
      step.then(*real_);
    }
    return step.told ? tl::unexpected{*step.told} : outcome;
  }

 private:
  std::unique_ptr<engine::Engine> real_;
  std::shared_ptr<std::deque<Step>> steps_;
};

class VersionedDoubt : public ServiceTest {
 protected:
  using Step = LossyEngine::Step;

  Result<ValueOutcome> write(std::optional<std::uint64_t> expected,
                             std::optional<std::string_view> bytes) {
    return client::write_value(*service_,
                               {.name = "x", .expected = expected, .bytes = bytes, .writer = {}});
  }
  std::optional<std::string> read() {
    const auto found = client::read_value(*service_, "x");
    EXPECT_TRUE(found);
    return found && *found ? (*found)->bytes : std::nullopt;
  }
  // Somebody else's.
  static void write_directly(engine::Engine& store, std::string_view bytes) {
    const auto found = store.load_value("x");
    ASSERT_TRUE(found && *found);
    ASSERT_TRUE(store
                    .write_value({.name = "x",
                                  .expected = (*found)->version,
                                  .bytes = bytes,
                                  .writer = base::Id::random()})
                    ->applied);
  }

  std::shared_ptr<std::deque<Step>> steps_ = std::make_shared<std::deque<Step>>();
  std::shared_ptr<client::Service> service_ = *client::Service::open(
      std::make_unique<LossyEngine>(open_engine(url(), 1), steps_), id(1), {});
};

TEST_F(VersionedDoubt, AnAppliedWriteFindsItself) {
  steps_->push_back({.applied = true, .told = lost()});
  const auto made = write(std::nullopt, "a");
  ASSERT_TRUE(made) << made.error();
  EXPECT_TRUE(made->applied);
  steps_->push_back({.applied = true, .told = lost()});
  steps_->push_back({.applied = true, .told = lost()});  // and once more
  const auto changed = write(made->version, "b");
  ASSERT_TRUE(changed) << changed.error();
  EXPECT_TRUE(changed->applied);
  EXPECT_EQ(changed->version, made->version + 1);
  steps_->push_back({.applied = true, .told = lost()});
  EXPECT_TRUE(write(changed->version, std::nullopt)->applied);
  EXPECT_EQ(read(), std::nullopt);
}

TEST_F(VersionedDoubt, AWriteThatDidNotArriveIsSentAgain) {
  steps_->push_back({.applied = false, .told = lost()});
  steps_->push_back({.applied = false, .told = away()});
  const auto made = write(std::nullopt, "a");
  ASSERT_TRUE(made) << made.error();
  EXPECT_TRUE(made->applied);
  EXPECT_EQ(read(), "a");
}

TEST_F(VersionedDoubt, ItLostTheRaceIfTheNextVersionIsSomebodyElses) {
  const auto made = write(std::nullopt, "a");
  steps_->push_back({.applied = false, .told = lost(), .then = [](engine::Engine& store) {
                       write_directly(store, "theirs");
                     }});
  const auto late = write(made->version, "mine");
  ASSERT_TRUE(late) << late.error();
  EXPECT_FALSE(late->applied);
  EXPECT_EQ(late->version, made->version + 1);
}

TEST_F(VersionedDoubt, NobodyCanTellIfOthersWroteSince) {
  const auto made = write(std::nullopt, "a");
  steps_->push_back({.applied = true, .told = lost(), .then = [](engine::Engine& store) {
                       write_directly(store, "theirs");
                     }});
  const auto unknown = write(made->version, "mine");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::outcome_unknown);
  EXPECT_EQ(read(), "theirs");
}

TEST_F(VersionedDoubt, WithoutDoubtAnErrorIsPassedOn) {
  steps_->push_back({.applied = false, .told = away()});
  const auto failed = write(std::nullopt, "a");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::unavailable);
  EXPECT_EQ(read(), std::nullopt);
}

}  // namespace
}  // namespace holdfast::test
