#pragma once

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/fork.h"
#include "engine/batch.h"
#include "engine/batch_in_flight.h"
#include "engine/engine.h"
#include "engine/task.h"

namespace holdfast::engine {

// An engine over a store that has lock recipes of its own: a Recipe performs
// the commands as coroutines, this deals them out.
//
// Recipe: options().timeout, session() with await_connection() and trouble(),
// connection(), was_not_sent(), perform(), renew(), list(), show(), bell(), changes(), stop();
// load_value(), write_value(), list_values(), tidy_values(); and together(): commands that are
// performed while what it returns lives may share a request.
template <typename Recipe>
class RecipeEngine : public Engine {
 public:
  RecipeEngine(std::shared_ptr<Recipe> recipe, Capabilities capabilities)
      : recipe_{std::move(recipe)}, capabilities_{std::move(capabilities)} {}

  ~RecipeEngine() override {
    if (inherited()) {
      new std::shared_ptr<Recipe>{std::move(recipe_)};  // its threads and socket are the parent's
      return;
    }
    recipe_->stop();
    std::set<Batch> left;
    {
      const std::lock_guard lock{mutex_};
      left.swap(batches_);
    }
    const Error ended{ErrorCode::outcome_unknown, "the store was closed meanwhile", std::nullopt};
    for (const Batch& batch : left) {
      batch->abandon(failed(ended));
    }
  }

  Result<void> connect() {
    const bool connected =
        recipe_->session().await_connection(base::BootClock::now() + recipe_->options().timeout);
    return connected ? Result<void>{} : tl::unexpected{recipe_->session().trouble()};
  }

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  // A release and the next request of this process for the lock are cheaper together, and so is
  // what is asked of different locks at the same time.
  base::Duration ride() const noexcept override { return std::chrono::milliseconds{1}; }
  void set_ttl(Duration ttl) { capabilities_.min_ttl = capabilities_.max_ttl = ttl; }

  void submit(std::size_t, std::span<const core::Command> commands, Patience patience,
              Done done) override {
    if (inherited()) {
      done(all_failed(commands.size(), inherited_by_fork()));
      return;
    }
    const auto batch = std::make_shared<BatchInFlight>(commands, std::move(done));
    {
      const std::lock_guard lock{mutex_};
      std::erase_if(batches_, [](const Batch& each) { return each.use_count() == 1; });
      batches_.insert(batch);
    }
    start(batch);
    batch->wait(patience.until);
  }

  int doorbell_fd() const noexcept override { return recipe_->bell().fd(); }
  std::vector<Ring> answer_doorbell() override {
    return inherited() ? std::vector<Ring>{} : recipe_->bell().answer();
  }
  bool may_have_changed() override {
    const std::uint64_t now = recipe_->changes();
    return seen_.exchange(now) != now;
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix) override {
    return ask<Result<std::vector<LockInfo>>>([&] { return recipe_->list(std::string{prefix}); });
  }
  Result<LockInfo> show(std::string_view name) override {
    if (auto good = check_name(name); !good) {
      return tl::unexpected{std::move(good.error())};
    }
    return ask<Result<LockInfo>>([&] { return recipe_->show(std::string{name}); });
  }

  Result<std::optional<core::Value>> load_value(std::string_view name) override {
    if (!capabilities_.values) {
      return Engine::load_value(name);
    }
    if (auto good = check_name(name); !good) {
      return tl::unexpected{std::move(good.error())};
    }
    return ask<Result<std::optional<core::Value>>>(
        [&] { return recipe_->load_value(std::string{name}); });
  }
  Result<core::ValueOutcome> write_value(const core::ValueWrite& write) override {
    if (!capabilities_.values) {
      return Engine::write_value(write);
    }
    if (auto good = check_name(write.name); !good) {
      return tl::unexpected{std::move(good.error())};
    }
    return ask<Result<core::ValueOutcome>>([&] { return recipe_->write_value(write); });
  }
  Result<std::vector<core::NamedValue>> list_values(std::string_view prefix) override {
    if (!capabilities_.values) {
      return Engine::list_values(prefix);
    }
    return ask<Result<std::vector<core::NamedValue>>>(
        [&] { return recipe_->list_values(std::string{prefix}); });
  }
  void tidy() override {
    if (!inherited() && capabilities_.values) {
      recipe_->tidy_values();
    }
  }

  Result<void> init() override { return {}; }
  Result<std::string> init_script() override {
    return "# " + capabilities_.engine + ": needs no preparation\n";
  }
  std::vector<Finding> doctor() override {
    if (inherited()) {
      return {{Finding::Level::problem, "store", inherited_by_fork().text, "open it again"}};
    }
    return findings(*recipe_);
  }

 protected:
  virtual std::vector<Finding> findings(Recipe& recipe) = 0;
  Recipe& recipe() noexcept { return *recipe_; }

 private:
  using Batch = std::shared_ptr<BatchInFlight>;
  using Line = std::vector<std::size_t>;

  // Renewals that share a request, which must not grow beyond what a server takes.
  static constexpr std::size_t kRenewalsAtOnce = 500;

  bool inherited() const noexcept { return generation_ != base::fork_generation(); }

  // Commands for one name, one after the other.
  static Detached run_line(std::shared_ptr<Recipe> recipe, Batch batch, Line line,
                           base::Time until) {
    for (const std::size_t index : line) {
      core::Outcome outcome;
      bool again = true;
      while (again) {
        const bool connected = co_await recipe->connection(until);
        if (connected) {
          outcome = co_await recipe->perform(batch->commands()[index]);
        } else {
          outcome = failed(recipe->session().trouble());
        }
        again = connected && recipe->was_not_sent(outcome) && base::BootClock::now() < until;
      }
      batch->put(index, std::move(outcome));
    }
  }

  static Detached run_renewals(std::shared_ptr<Recipe> recipe, Batch batch, Line line,
                               base::Time until) {
    const bool connected = co_await recipe->connection(until);
    std::vector<core::RequestId> ids;
    for (const std::size_t index : line) {
      ids.push_back(std::get<core::Renew>(batch->commands()[index].operation).id);
    }
    Outcomes outcomes;
    if (connected) {
      outcomes = co_await recipe->renew(std::move(ids));
    } else {
      outcomes = all_failed(line.size(), recipe->session().trouble());
    }
    for (std::size_t i = 0; i < line.size(); ++i) {
      batch->put(line[i], std::move(outcomes[i]));
    }
  }

  template <typename T>
  static Detached run_question([[maybe_unused]] std::shared_ptr<Recipe> recipe, Task<T> task,
                               std::shared_ptr<std::promise<T>> answer) {
    answer->set_value(co_await task);
  }

  void start(const Batch& batch) {
    const base::Time until = base::BootClock::now() + recipe_->options().timeout;
    const auto is_renewal = [&](std::size_t index) {
      return std::holds_alternative<core::Renew>(batch->commands()[index].operation);
    };
    std::vector<Line> lines;
    std::map<std::string_view, std::size_t> line_of;
    for (std::size_t i = 0; i < batch->commands().size(); ++i) {
      if (!is_renewal(i) && line_of.try_emplace(batch->commands()[i].name, lines.size()).second) {
        lines.emplace_back();
      }
    }
    // What else is asked of the same name keeps its order.
    Line renewals;
    for (std::size_t i = 0; i < batch->commands().size(); ++i) {
      const auto known = line_of.find(batch->commands()[i].name);
      (known == line_of.end() ? renewals : lines[known->second]).push_back(i);
    }
    const auto until_all_have_begun = recipe_->together();
    for (std::size_t i = 0; i < renewals.size(); i += kRenewalsAtOnce) {
      const std::size_t end = std::min(i + kRenewalsAtOnce, renewals.size());
      const auto at = [&](std::size_t index) {
        return renewals.begin() + static_cast<std::ptrdiff_t>(index);
      };
      run_renewals(recipe_, batch, {at(i), at(end)}, until);
    }
    for (Line& line : lines) {
      run_line(recipe_, batch, std::move(line), until);
    }
  }

 protected:
  template <typename T, typename Question>
  T ask(Question question) {
    if (inherited()) {
      return tl::unexpected{inherited_by_fork()};
    }
    if (auto connected = connect(); !connected) {
      return tl::unexpected{std::move(connected.error())};
    }
    auto answer = std::make_shared<std::promise<T>>();
    auto future = answer->get_future();
    run_question<T>(recipe_, question(), answer);
    return future.get();
  }

 private:
  const std::uint64_t generation_ = base::fork_generation();
  std::shared_ptr<Recipe> recipe_;
  Capabilities capabilities_;
  std::atomic<std::uint64_t> seen_{0};
  std::mutex mutex_;
  std::set<Batch> batches_;  // those that may still be on their way
};

}  // namespace holdfast::engine
