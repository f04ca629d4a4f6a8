#include "engines/sqlite/sqlite_forks.h"

#include <mutex>
#include <vector>

#include "base/fork.h"
#include "engines/sqlite/sqlite_engine.h"

namespace holdfast::engines {
namespace {

struct Open {
  std::mutex mutex;
  std::vector<SqliteEngine*> engines;
};

Open& open_engines();

void before_fork() {
  Open& open = open_engines();
  open.mutex.lock();
  for (SqliteEngine* engine : open.engines) {
    engine->prepare_fork();
  }
}

void finish() {
  Open& open = open_engines();
  for (SqliteEngine* engine : open.engines) {
    engine->finish_fork();
  }
}

void in_parent() {
  finish();
  open_engines().mutex.unlock();
}

void in_child() {
  finish();
  open_engines().engines.clear();  // its ancestors' business
  open_engines().mutex.unlock();
}

// Never destroyed: an engine may outlive main().
Open& open_engines() {
  static auto* const instance = [] {
    base::on_fork({.before = &before_fork, .in_parent = &in_parent, .in_child = &in_child});
    return new Open;
  }();
  return *instance;
}

}  // namespace

void SqliteForks::add(SqliteEngine& engine) {
  Open& open = open_engines();
  const std::lock_guard lock{open.mutex};
  open.engines.push_back(&engine);
}

void SqliteForks::remove(SqliteEngine& engine) {
  Open& open = open_engines();
  const std::lock_guard lock{open.mutex};
  std::erase(open.engines, &engine);
}

}  // namespace holdfast::engines
