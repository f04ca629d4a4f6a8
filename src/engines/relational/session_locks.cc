#include "engines/relational/session_locks.h"

#include <utility>

#include "base/fork.h"
#include "engine/batch.h"
#include "engines/relational/odd_bytes.h"
#include "engines/relational/session_work.h"

namespace holdfast::engines::relational {

SessionLocks::SessionLocks(std::unique_ptr<SessionStore> store, Terms terms)
    : generation_{base::fork_generation()},
      work_{std::make_unique<Work>(std::move(store), std::move(terms))} {}

Result<std::unique_ptr<engine::Engine>> SessionLocks::open(std::unique_ptr<SessionStore> store,
                                                           Terms terms) {
  std::unique_ptr<SessionLocks> engine{new SessionLocks{std::move(store), std::move(terms)}};
  auto admitted = engine->work_->at_desk<Result<void>>([](Books& books) { return books.admit(); });
  if (!admitted) {
    return tl::unexpected{admitted.error()};
  }
  return engine;
}

SessionLocks::~SessionLocks() {
  if (inherited()) {
    std::ignore = work_.release();  // its threads and sockets are the parent's
  }
}

bool SessionLocks::inherited() const noexcept {
  return generation_ != base::fork_generation();
}

const Capabilities& SessionLocks::capabilities() const noexcept {
  return work_->terms().capabilities;
}

void SessionLocks::submit(std::size_t, std::span<const core::Command> batch,
                          engine::Patience patience, engine::Done done) {
  if (inherited()) {
    done(engine::all_failed(batch.size(), engine::inherited_by_fork()));
    return;
  }
  work_->begin(batch, patience, std::move(done));
}

int SessionLocks::doorbell_fd() const noexcept {
  return work_->bell_fd();
}

std::vector<engine::Ring> SessionLocks::answer_doorbell() {
  return inherited() ? std::vector<engine::Ring>{} : work_->answer();
}

void SessionLocks::tidy() {
  if (!inherited()) {
    std::ignore = work_->at_desk<Result<void>>([](Books& books) { return books.tidy(); });
  }
}

Result<std::vector<LockInfo>> SessionLocks::list(std::string_view prefix) {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return work_->at_desk<Result<std::vector<LockInfo>>>(
      [&](Books& books) { return books.find(escaped(prefix)); });
}

Result<LockInfo> SessionLocks::show(std::string_view name) {
  if (auto good = engine::check_name(name); !good) {
    return tl::unexpected{good.error()};
  }
  return list(name).map([&](std::vector<LockInfo> locks) {
    LockInfo shown;
    shown.name = name;
    for (LockInfo& each : locks) {
      if (each.name == name) {
        shown = std::move(each);
      }
    }
    return shown;
  });
}

Result<void> SessionLocks::init() {
  if (inherited()) {
    return tl::unexpected{engine::inherited_by_fork()};
  }
  return work_->at_desk<Result<void>>([](Books& books) { return books.create(); });
}

Result<std::string> SessionLocks::init_script() {
  return work_->store().script();
}

std::vector<Finding> SessionLocks::doctor() {
  if (inherited()) {
    return {{.level = Finding::Level::problem,
             .topic = "store",
             .text = engine::inherited_by_fork().text,
             .advice = "open it again"}};
  }
  auto findings =
      work_->at_desk<std::vector<Finding>>([](Books& books) { return books.examine(); });
  findings.push_back({.level = Finding::Level::ok,
                      .topic = "sessions",
                      .text = "at most " + std::to_string(work_->terms().max_sessions) +
                              " locks held or awaited by a client, each by a connection of its own",
                      .advice = ""});
  return findings;
}

}  // namespace holdfast::engines::relational
