#include "engines/mysql/mysql_engine.h"

#include <utility>

#include "base/fork.h"
#include "engine/batch.h"
#include "engines/mysql/mysql_classic.h"
#include "engines/mysql/mysql_row_update.h"
#include "engines/mysql/mysql_session_locks.h"

namespace holdfast::engines {
namespace {

// Each is a connection; with the doorbell and the clerk there are four.
constexpr std::size_t kLanes = 2;

std::span<const Capabilities> capability_rows() {
  static const std::vector<Capabilities> rows = [] {
    Capabilities lease;
    lease.engine = "mysql";
    lease.strategy = "lease";
    lease.values = true;
    lease.clock = "store";
    std::vector<Capabilities> all{lease};
    for (const ClassicForm& form : classic_forms()) {
      all.push_back(MysqlClassic::row(form));
    }
    for (const std::string_view strategy : kMysqlSessionStrategies) {
      all.push_back(mysql_session_locks_row(strategy));
    }
    return all;
  }();
  return rows;
}

Result<std::unique_ptr<engine::Engine>> open_mysql(const engine::Url& url,
                                                   const engine::EngineOptions& client) {
  auto options = MysqlOptions::from(url);
  if (!options) {
    return tl::unexpected{std::move(options.error())};
  }
  if (const ClassicForm* form = classic_form(options->strategy)) {
    return std::make_unique<MysqlClassic>(*form, std::move(*options), client);
  }
  if (is_session_strategy(options->strategy)) {
    return open_mysql_session_locks(*options, client);
  }
  return std::make_unique<MysqlEngine>(std::move(*options), client);
}

}  // namespace

engine::Registration mysql_registration() {
  return {.scheme = "mysql",
          .example = "mysql://user@host/database",
          .open = open_mysql,
          .capabilities = capability_rows,
          .update_row = &update_row_on_mysql};
}

MysqlEngine::MysqlEngine(MysqlOptions options, const engine::EngineOptions& client)
    : options_{std::move(options)},
      client_{client},
      generation_{base::fork_generation()},
      sql_{options_, client_.party, client_.session},
      doorbell_{options_, client_, sql_},
      driver_{std::make_unique<engine::Driver>()},
      clerk_{options_, sql_, *driver_} {
  sql_.set_now(client_.now);
  clerk_.set_now(client_.now);
  for (std::size_t i = 0; i < kLanes; ++i) {
    exchanges_.push_back(
        std::make_unique<MysqlExchange>(MysqlContext{options_, client_, sql_, doorbell_}));
  }
}

MysqlEngine::~MysqlEngine() {
  if (inherited()) {
    for (auto& exchange : exchanges_) {
      exchange->forget();
      std::ignore = exchange.release();
    }
    doorbell_.forget();
    clerk_.forget();
  }
  driver_ = nullptr;
}

bool MysqlEngine::inherited() const noexcept {
  return generation_ != base::fork_generation();
}

const Capabilities& MysqlEngine::capabilities() const noexcept {
  return capability_rows().front();
}

void MysqlEngine::submit(std::size_t lane, std::span<const core::Command> batch,
                         engine::Patience patience, engine::Done done) {
  if (inherited()) {
    done(engine::all_failed(batch.size(), engine::inherited_by_fork()));
    return;
  }
  MysqlExchange& exchange = *exchanges_.at(lane);
  exchange.begin(batch, std::move(done));
  driver_->run(exchange, patience);
}

std::vector<engine::Ring> MysqlEngine::answer_doorbell() {
  return inherited() ? std::vector<engine::Ring>{} : doorbell_.answer();
}

void MysqlEngine::tidy() {
  if (!inherited()) {
    clerk_.tidy();
  }
}

Result<std::vector<LockInfo>> MysqlEngine::list(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return clerk_.list(prefix);
}

Result<LockInfo> MysqlEngine::show(std::string_view name) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return clerk_.show(name);
}

Result<std::optional<core::Value>> MysqlEngine::load_value(std::string_view name) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return engine::check_name(name).and_then([&] { return clerk_.load_value(name); });
}

Result<core::ValueOutcome> MysqlEngine::write_value(const core::ValueWrite& write) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return engine::check_name(write.name).and_then([&] { return clerk_.write_value(write); });
}

Result<std::vector<core::NamedValue>> MysqlEngine::list_values(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return clerk_.list_values(prefix);
}

Result<void> MysqlEngine::init() {
  return inherited() ? Result<void>{tl::unexpected{engine::inherited_by_fork()}} : clerk_.init();
}

Result<std::string> MysqlEngine::init_script() {
  std::string script;
  for (const std::string& statement : sql_.schema()) {
    script += statement + ";\n";
  }
  return script + values_schema(options_) + ";\n";
}

std::vector<Finding> MysqlEngine::doctor() {
  return clerk_.doctor();
}

}  // namespace holdfast::engines
