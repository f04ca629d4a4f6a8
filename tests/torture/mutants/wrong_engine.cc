#include "torture/mutants/wrong_engine.h"

#include <map>
#include <mutex>
#include <utility>
#include <variant>

namespace holdfast::test {
namespace {

using core::Acquire;
using core::Command;
using core::Outcome;
using core::Renew;
using core::Status;

constexpr std::uint64_t kSomeToken = 1'000'000'000;

class WrongEngine : public engine::Engine {
 public:
  WrongEngine(std::unique_ptr<engine::Engine> engine, std::string mistake)
      : engine_{std::move(engine)}, mistake_{std::move(mistake)} {}

  const Capabilities& capabilities() const noexcept override { return engine_->capabilities(); }
  std::size_t lanes() const noexcept override { return engine_->lanes(); }
  int doorbell_fd() const noexcept override { return engine_->doorbell_fd(); }
  bool may_have_changed() override { return engine_->may_have_changed(); }
  void tidy() override { engine_->tidy(); }
  Result<std::vector<LockInfo>> list(std::string_view prefix) override {
    return engine_->list(prefix);
  }
  Result<LockInfo> show(std::string_view name) override { return engine_->show(name); }
  Result<void> init() override { return engine_->init(); }
  Result<std::string> init_script() override { return engine_->init_script(); }
  std::vector<Finding> doctor() override { return engine_->doctor(); }

  std::vector<engine::Ring> answer_doorbell() override {
    auto rings = engine_->answer_doorbell();
    for (engine::Ring& ring : rings) {
      ring.token = token(ring.token);
    }
    return rings;
  }

  void submit(std::size_t lane, std::span<const Command> batch, engine::Patience patience,
              engine::Done done) override {
    auto asked = std::make_shared<std::vector<Command>>(batch.begin(), batch.end());
    if (mistake_ == "blind_unlock") {
      unlock_blindly(*asked);
    }
    for (Command& command : *asked) {
      distort(command);
    }
    const std::size_t wanted = batch.size();
    engine_->submit(lane, *asked, patience,
                    [this, asked, wanted, done = std::move(done)](engine::Outcomes outcomes) {
                      for (std::size_t i = 0; i < outcomes.size(); ++i) {
                        distort((*asked)[i], outcomes[i]);
                      }
                      if (outcomes.size() > wanted) {
                        drop_revocations(*asked, outcomes);
                      }
                      done(std::move(outcomes));
                    });
  }

 private:
  std::uint64_t token(std::uint64_t real) const {
    if (real == 0) {
      return 0;
    }
    if (mistake_ == "token_constant") {
      return kSomeToken;
    }
    return mistake_ == "token_falls" ? core::kMaxToken - real : real;
  }

  // Whoever comes frees the lock first, as one does who deletes another's key.
  static void unlock_blindly(std::vector<Command>& commands) {
    std::vector<Command> more;
    for (Command& command : commands) {
      if (std::holds_alternative<Acquire>(command.operation)) {
        more.push_back({command.name, core::Revoke{.now = true}});
      }
      more.push_back(std::move(command));
    }
    commands = std::move(more);
  }
  static void drop_revocations(const std::vector<Command>& asked, engine::Outcomes& outcomes) {
    engine::Outcomes kept;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (!std::holds_alternative<core::Revoke>(asked[i].operation)) {
        kept.push_back(outcomes[i]);
      }
    }
    outcomes = std::move(kept);
  }

  void distort(Command& command) {
    auto* acquire = std::get_if<Acquire>(&command.operation);
    if (auto* requeue = std::get_if<core::Requeue>(&command.operation)) {
      acquire = &requeue->next;
    }
    if (acquire != nullptr) {
      const std::scoped_lock lock{mutex_};
      ttls_[acquire->id] = acquire->ttl;
      if (mistake_ == "writer_as_reader" && acquire->shape.mode == Mode::exclusive) {
        acquire->shape.mode = Mode::shared;
      }
      if (mistake_ == "permits_as_one") {
        acquire->shape.permits = 1;
      }
    }
    if (mistake_ == "renewal_pretended" && std::holds_alternative<Renew>(command.operation)) {
      command.operation = core::Poll{std::get<Renew>(command.operation).id, false};
      pretended(command);
    }
  }

  void pretended(const Command& command) {
    const std::scoped_lock lock{mutex_};
    pretended_.insert_or_assign(std::get<core::Poll>(command.operation).id, true);
  }

  void distort(const Command& command, Outcome& outcome) {
    outcome.token = token(outcome.token);
    if (mistake_ == "lease_stretched") {
      outcome.lease_for *= 5;
    }
    const auto* acquire = std::get_if<Acquire>(&command.operation);
    if (mistake_ == "busy_as_granted" && acquire != nullptr && outcome.status == Status::busy) {
      outcome = {
          .status = Status::granted, .token = kSomeToken + ++made_up_, .lease_for = acquire->ttl};
    }
    if (const auto* poll = std::get_if<core::Poll>(&command.operation)) {
      const std::scoped_lock lock{mutex_};
      if (pretended_.erase(poll->id) > 0 && outcome.status == Status::granted) {
        outcome.status = Status::renewed;
        outcome.lease_for = ttls_[poll->id];
      }
    }
  }

  std::unique_ptr<engine::Engine> engine_;
  std::string mistake_;
  std::mutex mutex_;
  std::map<core::RequestId, Duration> ttls_;
  std::map<core::RequestId, bool> pretended_;
  std::atomic<std::uint64_t> made_up_ = 0;
};

}  // namespace

std::unique_ptr<engine::Engine> make_wrong(std::unique_ptr<engine::Engine> engine,
                                           std::string mistake) {
  return std::make_unique<WrongEngine>(std::move(engine), std::move(mistake));
}

}  // namespace holdfast::test
