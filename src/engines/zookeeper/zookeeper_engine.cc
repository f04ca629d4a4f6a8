#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include "engines/zookeeper/zookeeper_engine.h"

#include <array>
#include <future>
#include <map>
#include <set>
#include <utility>

#include "base/fork.h"
#include "engine/batch.h"
#include "engine/batch_in_flight.h"
#include "engines/zookeeper/zookeeper_doctor.h"
#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {
namespace {

using core::Outcome;

// Renewals that share a request, which must fit into the server's 1 MiB.
constexpr std::size_t kRenewalsAtOnce = 500;

std::span<const Capabilities> capability_rows() {
  static const std::array rows = [] {
    Capabilities queue;
    queue.engine = "zookeeper";
    queue.exclusion = ExclusionBy::quorum;
    queue.lease = false;
    queue.clock = "ensemble";
    Capabilities simple = queue;
    simple.strategy = "simple";
    simple.fifo = false;
    simple.wake_up = WakeUp::event_herd;
    simple.shared = false;
    simple.permits = false;
    return std::array{queue, simple};
  }();
  return rows;
}

using Recipe = std::shared_ptr<ZookeeperRecipe>;
using Batch = std::shared_ptr<engine::BatchInFlight>;

Outcome no_connection(ZookeeperRecipe& recipe) {
  return engine::failed(recipe.session().trouble());
}

// Commands for one name, one after the other.
engine::Detached run_line(Recipe recipe, Batch batch, std::vector<std::size_t> line,
                          base::Time until) {
  const bool connected = co_await recipe->connection(until);
  for (const std::size_t index : line) {
    if (!connected) {
      batch->put(index, no_connection(*recipe));
      continue;
    }
    auto outcome = co_await recipe->perform(batch->commands()[index]);
    batch->put(index, std::move(outcome));
  }
}

engine::Detached run_renewals(Recipe recipe, Batch batch, std::vector<std::size_t> line,
                              base::Time until) {
  const bool connected = co_await recipe->connection(until);
  std::vector<core::RequestId> ids;
  for (const std::size_t index : line) {
    ids.push_back(std::get<core::Renew>(batch->commands()[index].operation).id);
  }
  engine::Outcomes outcomes(line.size(), no_connection(*recipe));
  if (connected) {
    outcomes = co_await recipe->renew(std::move(ids));
  }
  for (std::size_t i = 0; i < line.size(); ++i) {
    batch->put(line[i], std::move(outcomes[i]));
  }
}

template <typename T>
engine::Detached run_question([[maybe_unused]] Recipe recipe, engine::Task<T> task,
                              std::shared_ptr<std::promise<T>> answer) {
  answer->set_value(co_await task);
}

class ZookeeperEngine : public engine::Engine {
 public:
  ZookeeperEngine(const ZookeeperOptions& options, engine::EngineOptions client)
      : recipe_{std::make_shared<ZookeeperRecipe>(options, std::move(client))},
        capabilities_{capability_rows()[options.strategy == ZookeeperOptions::Strategy::simple]} {}

  ~ZookeeperEngine() override {
    if (inherited()) {
      new Recipe{std::move(recipe_)};  // its threads and its socket are the parent's
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
      batch->abandon(engine::failed(ended));
    }
  }

  Result<void> connect() {
    const ZookeeperOptions& options = recipe_->options();
    ZookeeperSession& session = recipe_->session();
    if (!session.await_connection(base::BootClock::now() + options.timeout)) {
      return tl::unexpected{session.trouble()};
    }
    capabilities_.min_ttl = session.negotiated();
    capabilities_.max_ttl = session.negotiated();
    return {};
  }

  const Capabilities& capabilities() const noexcept override { return capabilities_; }

  void submit(std::size_t, std::span<const core::Command> commands, engine::Patience patience,
              engine::Done done) override {
    if (inherited()) {
      done(engine::all_failed(commands.size(), engine::inherited_by_fork()));
      return;
    }
    const auto batch = std::make_shared<engine::BatchInFlight>(commands, std::move(done));
    {
      const std::lock_guard lock{mutex_};
      std::erase_if(batches_, [](const Batch& each) { return each.use_count() == 1; });
      batches_.insert(batch);
    }
    start(batch);
    batch->wait(patience.until);
  }

  int doorbell_fd() const noexcept override { return recipe_->bell().fd(); }
  std::vector<engine::Ring> answer_doorbell() override {
    return inherited() ? std::vector<engine::Ring>{} : recipe_->bell().answer();
  }
  bool may_have_changed() override {
    const std::uint64_t now = recipe_->changes();
    return seen_.exchange(now) != now;
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix) override {
    return ask<Result<std::vector<LockInfo>>>([&] { return recipe_->list(std::string{prefix}); });
  }

  Result<LockInfo> show(std::string_view name) override {
    if (auto good = engine::check_name(name); !good) {
      return tl::unexpected{std::move(good.error())};
    }
    return ask<Result<LockInfo>>([&] { return recipe_->show(std::string{name}); });
  }

  Result<void> init() override { return {}; }
  Result<std::string> init_script() override {
    return "# zookeeper: needs no preparation; nodes are made and removed as they are used\n";
  }
  std::vector<Finding> doctor() override {
    if (inherited()) {
      const Error why = engine::inherited_by_fork();
      return {{Finding::Level::problem, "store", why.text, "open it again"}};
    }
    return zookeeper_findings(recipe_->session(), recipe_->options());
  }

 private:
  bool inherited() const noexcept { return generation_ != base::fork_generation(); }

  void start(const Batch& batch) {
    const base::Time until = base::BootClock::now() + recipe_->options().timeout;
    std::vector<std::size_t> renewals;
    std::vector<std::vector<std::size_t>> lines;
    std::map<std::string_view, std::size_t> line_of;
    for (std::size_t i = 0; i < batch->commands().size(); ++i) {
      const core::Command& command = batch->commands()[i];
      if (std::holds_alternative<core::Renew>(command.operation)) {
        renewals.push_back(i);
        continue;
      }
      const auto [known, added] = line_of.try_emplace(command.name, lines.size());
      if (added) {
        lines.emplace_back();
      }
      lines[known->second].push_back(i);
    }
    for (std::size_t i = 0; i < renewals.size(); i += kRenewalsAtOnce) {
      const auto first = renewals.begin() + static_cast<std::ptrdiff_t>(i);
      const auto last = renewals.begin() +
                        static_cast<std::ptrdiff_t>(std::min(i + kRenewalsAtOnce, renewals.size()));
      run_renewals(recipe_, batch, {first, last}, until);
    }
    for (auto& line : lines) {
      run_line(recipe_, batch, std::move(line), until);
    }
  }

  template <typename T, typename Question>
  T ask(Question question) {
    if (inherited()) {
      return tl::unexpected{engine::inherited_by_fork()};
    }
    if (!recipe_->session().await_connection(base::BootClock::now() + recipe_->options().timeout)) {
      return tl::unexpected{recipe_->session().trouble()};
    }
    auto answer = std::make_shared<std::promise<T>>();
    auto future = answer->get_future();
    run_question<T>(recipe_, question(), answer);
    return future.get();
  }

  const std::uint64_t generation_ = base::fork_generation();
  Recipe recipe_;
  Capabilities capabilities_;
  std::atomic<std::uint64_t> seen_{0};
  std::mutex mutex_;
  std::set<Batch> batches_;  // those that may still be on their way
};

Result<std::unique_ptr<engine::Engine>> open_zookeeper(const engine::Url& url,
                                                       const engine::EngineOptions& client) {
  auto options = ZookeeperOptions::from(url);
  if (!options) {
    return tl::unexpected{std::move(options.error())};
  }
  auto opened = std::make_unique<ZookeeperEngine>(*options, client);
  if (auto connected = opened->connect(); !connected) {
    return tl::unexpected{std::move(connected.error())};
  }
  return opened;
}

}  // namespace

engine::Registration zookeeper_registration() {
  return {.scheme = "zookeeper",
          .example = "zookeeper://127.0.0.1:2181/locks",
          .open = &open_zookeeper,
          .capabilities = &capability_rows};
}

}  // namespace holdfast::engines
