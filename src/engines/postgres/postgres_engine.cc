#include "engines/postgres/postgres_engine.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/fork.h"
#include "engine/batch.h"
#include "engine/describe.h"
#include "engines/postgres/postgres_errors.h"
#include "engines/postgres/postgres_row_update.h"
#include "engines/postgres/postgres_session_locks.h"
#include "engines/postgres/postgres_shedlock.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines {
namespace {

using postgres::LeaseEngine;
using postgres::Options;
using postgres::Strategy;

std::span<const Capabilities> capability_rows() {
  static const std::array rows{
      [] {
        Capabilities row;
        row.engine = "postgres";
        row.strategy = "lease";
        row.upgrade = true;
        row.transfer = true;
        row.values = true;
        row.clock = "store";
        return row;
      }(),
      postgres::ShedlockEngine::row(),
      postgres::session_locks_row(Strategy::row),
      postgres::session_locks_row(Strategy::advisory),
  };
  return rows;
}

Result<std::unique_ptr<engine::Engine>> open_postgres(const engine::Url& url,
                                                      const engine::EngineOptions& client) {
  auto options = Options::from(url);
  if (!options) {
    return tl::unexpected{options.error()};
  }
  switch (options->strategy) {
    case Strategy::lease:
      break;
    case Strategy::shedlock:
      return postgres::ShedlockEngine::open(*options, client);
    case Strategy::row:
    case Strategy::advisory:
      return postgres::open_session_locks(*options, client);
  }
  return LeaseEngine::open(*options, client);
}

}  // namespace

engine::Registration postgres_registration() {
  return {.scheme = "postgres",
          .example = "postgres://user@host/database",
          .open = &open_postgres,
          .capabilities = &capability_rows,
          .update_row = &postgres::update_row};
}

engine::Registration postgresql_registration() {
  return {.scheme = "postgresql",
          .example = "postgresql://user@host/database",
          .open = &open_postgres,
          .capabilities = [] { return std::span<const Capabilities>{}; }};
}

namespace postgres {

using engine::Talk;

namespace {

// What the command gives back, if it does.
const core::RequestId* given_back(const core::Command& command) {
  if (const auto* release = std::get_if<core::Release>(&command.operation)) {
    return &release->id;
  }
  const auto* requeue = std::get_if<core::Requeue>(&command.operation);
  return requeue != nullptr ? &requeue->id : nullptr;
}

}  // namespace

LeaseEngine::LeaseEngine(const Options& options, const engine::EngineOptions& client)
    : shared_{.options = options, .sql = LeaseSql{options.schema}, .client = client},
      generation_{base::fork_generation()},
      doorbell_{shared_},
      session_{shared_.options},
      desk_{shared_.options} {}

Result<std::unique_ptr<engine::Engine>> LeaseEngine::open(const Options& options,
                                                          const engine::EngineOptions& client) {
  std::unique_ptr<LeaseEngine> engine{new LeaseEngine{options, client}};
  // Wrong passwords and addresses are the caller's to hear of at once.
  auto connected =
      engine->desk_.run<Result<void>>(*engine->driver_, [&] { return engine->session_.connect(); });
  if (!connected) {
    return tl::unexpected{connected.error()};
  }
  return engine;
}

LeaseEngine::~LeaseEngine() = default;

const Capabilities& LeaseEngine::capabilities() const noexcept {
  return capability_rows().front();
}

bool LeaseEngine::inherited() const noexcept {
  return generation_ != base::fork_generation();
}

void LeaseEngine::submit(std::size_t, std::span<const core::Command> batch,
                         engine::Patience patience, engine::Done done) {
  if (inherited()) {
    done(engine::all_failed(batch.size(), engine::inherited_by_fork()));
    return;
  }
  for (const core::Command& command : batch) {
    if (const auto* id = given_back(command)) {
      doorbell_.gives_back(*id);
    }
  }
  lane_.begin(*driver_, run_batch(batch), patience,
              [this, batch, finish = std::move(done)](engine::Outcomes outcomes) {
                hear_for_holders(batch, outcomes);
                finish(std::move(outcomes));
              });
}

// A holder hears when it is revoked.
void LeaseEngine::hear_for_holders(std::span<const core::Command> batch,
                                   const engine::Outcomes& outcomes) {
  bool holds = false;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const core::Command& command = batch[i];
    const auto* requeue = std::get_if<core::Requeue>(&command.operation);
    if (const auto* id = given_back(command)) {
      outcomes[i].status == core::Status::failed ? doorbell_.may_still_hold(*id)
                                                 : doorbell_.gave_back(*id);
    }
    if (outcomes[i].status != core::Status::granted) {
      continue;
    }
    holds = true;
    if (const auto* acquire = std::get_if<core::Acquire>(&command.operation)) {
      doorbell_.holds(relational::escaped(command.name), acquire->id);
    } else if (requeue != nullptr) {
      doorbell_.holds(relational::escaped(command.name), requeue->next.id);
    }
  }
  if (holds) {
    doorbell_.hang(*driver_);
  }
}

Talk<engine::Outcomes> LeaseEngine::run_batch(std::span<const core::Command> batch) {
  Batch work{shared_, *driver_, session_, doorbell_, known_, batch};
  co_return co_await work.run();
}

std::vector<engine::Ring> LeaseEngine::answer_doorbell() {
  if (inherited()) {
    return {};
  }
  auto rings = doorbell_.answer();
  doorbell_.hang(*driver_);  // if the connection has just been lost
  return rings;
}

}  // namespace postgres
}  // namespace holdfast::engines
