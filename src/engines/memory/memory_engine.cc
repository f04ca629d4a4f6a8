#include "engines/memory/memory_engine.h"

#include <array>
#include <utility>

#include "base/fork.h"
#include "base/time.h"
#include "engine/batch.h"
#include "engines/memory/memory_store.h"

namespace holdfast::engines {
namespace {

std::span<const Capabilities> capability_rows() {
  static const std::array rows{[] {
    Capabilities row;
    row.engine = "memory";
    row.values = true;
    row.upgrade = true;
    row.transfer = true;
    row.clock = "CLOCK_BOOTTIME + boot id";
    return row;
  }()};
  return rows;
}

class MemoryEngine : public engine::Engine {
 public:
  MemoryEngine(const std::string& name, const engine::EngineOptions& options)
      : options_{options},
        doorbell_{std::make_shared<engine::Bell>()},
        store_{MemoryStore::open(name)} {
    store_->attach(options_.session, options_.party, doorbell_);
  }

  ~MemoryEngine() override {
    if (inherited()) {
      // Another thread of the parent may have held the store's lock.
      new std::shared_ptr<MemoryStore>{std::move(store_)};
      new std::shared_ptr<engine::Bell>{std::move(doorbell_)};
      return;
    }
    store_->detach(options_.session);
  }

  const Capabilities& capabilities() const noexcept override { return capability_rows().front(); }

  void submit(std::size_t, std::span<const core::Command> batch, engine::Patience,
              engine::Done done) override {
    done(inherited() ? engine::all_failed(batch.size(), engine::inherited_by_fork())
                     : store_->apply(batch, options_));
  }

  int doorbell_fd() const noexcept override { return doorbell_->fd(); }

  std::vector<engine::Ring> answer_doorbell() override {
    return inherited() ? std::vector<engine::Ring>{} : doorbell_->answer();
  }

  bool may_have_changed() override {
    const std::uint64_t version = store_->version();
    return seen_.exchange(version) != version;
  }

  // About what it costs to sleep and be woken.

  void tidy() override {
    if (!inherited()) {
      store_->tidy(engine::moment(options_));
    }
  }

  Result<std::vector<LockInfo>> list(std::string_view prefix) override {
    if (inherited()) {
      return tl::unexpected{engine::inherited_by_fork()};
    }
    return store_->list(prefix, now());
  }

  Result<LockInfo> show(std::string_view name) override {
    if (inherited()) {
      return tl::unexpected{engine::inherited_by_fork()};
    }
    if (auto good = engine::check_name(name); !good) {
      return tl::unexpected{std::move(good.error())};
    }
    return store_->show(name, now());
  }

  Result<std::optional<core::Value>> load_value(std::string_view name) override {
    return usable(name).map([&] { return store_->load_value(name, wall()); });
  }
  Result<core::ValueOutcome> write_value(const core::ValueWrite& write) override {
    return usable(write.name).map([&] { return store_->write_value(write, options_); });
  }
  Result<std::vector<core::NamedValue>> list_values(std::string_view prefix) override {
    return usable("any").map([&] { return store_->list_values(prefix, wall()); });
  }

  Result<void> init() override { return {}; }
  Result<std::string> init_script() override { return "-- memory: needs no preparation\n"; }

  std::vector<Finding> doctor() override {
    return {{.level = Finding::Level::ok,
             .topic = "store",
             .text = "in the memory of this process; other processes have locks of their own",
             .advice = ""}};
  }

 private:
  bool inherited() const noexcept { return generation_ != base::fork_generation(); }
  Result<void> usable(std::string_view name) const {
    if (inherited()) {
      return tl::unexpected{engine::inherited_by_fork()};
    }
    return engine::check_name(name);
  }
  core::Micros wall() const { return engine::moment(options_).token_floor; }
  base::Time now() const { return options_.now ? options_.now() : base::BootClock::now(); }

  const engine::EngineOptions options_;
  const std::uint64_t generation_ = base::fork_generation();
  std::atomic<std::uint64_t> seen_{0};
  std::shared_ptr<engine::Bell> doorbell_;
  std::shared_ptr<MemoryStore> store_;
};

Result<std::unique_ptr<engine::Engine>> open_memory(const engine::Url& url,
                                                    const engine::EngineOptions& options) {
  if (!url.hosts.empty() || !url.user.empty() || !url.query.empty()) {
    return fail(ErrorCode::invalid_argument,
                "memory: takes a name and nothing else, as in memory: or memory:tests");
  }
  return std::make_unique<MemoryEngine>(url.path, options);
}

}  // namespace

engine::Registration memory_registration() {
  return {.scheme = "memory",
          .example = "memory:",
          .open = &open_memory,
          .capabilities = &capability_rows};
}

}  // namespace holdfast::engines
