// What people see of a lock, and what they may force.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>
#include <set>

#include "engine/batch.h"
#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {
namespace {

using core::Outcome;
using core::Status;

constexpr int kAttempts = 10;
// What Curator's Revocable locks listen for.
constexpr std::string_view kCuratorsRevoke = "__REVOKE__";

// No lock is called so: what else we keep.
bool is_ours_alone(std::string_view child) {
  return child == "%waiting" || child == "%values" || child == "%clock";
}

Mode mode_of(NodeKind kind, bool semaphore) {
  if (semaphore) {
    return Mode::permits;
  }
  return kind == NodeKind::reader ? Mode::shared : Mode::exclusive;
}

}  // namespace

engine::Task<ZookeeperRecipe::Holding> ZookeeperRecipe::holding(std::string dir) {
  Holding now;
  ZookeeperPair both{session_->get(dir), session_->children(dir)};
  const auto [record, listed] = co_await both;
  const bool simple = options_.strategy == ZookeeperOptions::Strategy::simple;
  if (simple) {
    const auto holder = PartyNote::parse(record.text);
    std::string guid = record.ok() && holder ? holder->guid : "";
    const auto waiting = co_await badges_of(dir, guid);
    for (const std::string& badge : waiting) {
      now.queue.push_back({.name = badge, .guid = ""});
    }
    if (record.ok()) {
      now.holders.push_back({.name = "", .guid = std::move(guid)});  // the lock's node itself
    }
  }
  const bool made_meanwhile = record.status == ZookeeperStatus::no_node && listed.ok() && !simple;
  if (listed.status == ZookeeperStatus::no_node || made_meanwhile) {
    co_return now;
  }
  if (!record.ok() || !listed.ok()) {
    now.error = record.ok() ? listed.error() : record.error();
    co_return now;
  }
  now.exists = true;
  now.version = record.version;
  now.note = LockNote::parse(record.text);
  if (simple) {
    co_return now;
  }
  for (LockNode& node : lock_nodes(options_.layout, listed.children)) {
    const auto behind_reader = [&] {
      return std::ranges::all_of(
          now.holders, [](const LockNode& holder) { return holder.kind == NodeKind::reader; });
    };
    const bool holds = now.queue.empty() &&
                       (now.holders.empty() || (node.kind == NodeKind::reader && behind_reader() &&
                                                !now.note.is_revoked(now.holders.front().guid)));
    (holds ? now.holders : now.queue).push_back(std::move(node));
  }
  if (std::ranges::find(listed.children, "leases") != listed.children.end()) {
    ZookeeperPair below{session_->children(dir + "/leases"), session_->children(dir + "/locks")};
    const auto [leases, locks] = co_await below;
    for (LockNode& node : lock_nodes(options_.layout, leases.children)) {
      node.name.insert(0, "leases/");
      now.holders.push_back(std::move(node));
    }
    for (LockNode& node : lock_nodes(options_.layout, locks.children)) {
      node.name.insert(0, "locks/");
      now.queue.push_back(std::move(node));
    }
  }
  co_return now;
}

engine::Task<Result<LockInfo>> ZookeeperRecipe::describe(std::string name, std::string dir,
                                                         engine::Ages ages) {
  Holding now = co_await holding(dir);
  if (now.error) {
    co_return tl::unexpected{*now.error};
  }
  LockInfo info;
  info.name = std::move(name);
  std::set<std::string> seen;  // a holder of several permits has several nodes
  for (const LockNode& node : now.holders) {
    // Named before it is awaited: GCC 12 frees a conditional temporary twice there.
    std::string path = node.name.empty() ? dir : dir + "/" + node.name;
    const ZookeeperReply got = co_await session_->get(std::move(path));
    if (!got.ok() || (got.owner == 0 && node.name.empty()) || !seen.insert(node.guid).second) {
      continue;
    }
    const bool semaphore = node.kind == NodeKind::lease;
    const auto note = PartyNote::parse(got.text);
    HolderInfo holder;
    holder.mode = mode_of(node.kind, semaphore);
    holder.token = note && note->token != 0 ? note->token : zookeeper_token(got.czxid);
    holder.held_for = ages.since(got.ctime_ms);
    holder.expires_in = session_->negotiated();
    holder.revoked = now.note.is_revoked(node.guid) || got.text == kCuratorsRevoke;
    holder.permits = note ? note->permits : 1;
    holder.party = note ? note->party : foreign(got);
    info.holders.push_back(std::move(holder));
  }
  for (const LockNode& node : now.queue) {
    std::string path = node.name.starts_with('/') ? node.name : dir + "/" + node.name;
    const ZookeeperReply got = co_await session_->get(std::move(path));
    if (!got.ok()) {
      continue;
    }
    const auto note = PartyNote::parse(got.text);
    info.queue.push_back({.party = note ? note->party : foreign(got),
                          .mode = mode_of(node.kind, node.name.starts_with("locks/")),
                          .permits = note ? note->permits : 1,
                          .waiting_for = ages.since(got.ctime_ms)});
  }
  const bool used = !info.holders.empty() || !info.queue.empty();
  info.limit = used && now.note.kind == LockNote::Kind::semaphore ? now.note.limit : 0;
  co_return info;
}

// Curator writes its address, kazoo what its user likes.
Party ZookeeperRecipe::foreign(const ZookeeperReply& node) const {
  std::string text = node.text.substr(0, 64);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  const bool kazoo = options_.layout == ZookeeperOptions::Layout::kazoo;
  return {.label = kazoo ? "kazoo " + text : "curator", .host = kazoo ? "" : text, .pid = 0};
}

engine::Task<Result<LockInfo>> ZookeeperRecipe::show(std::string name) {
  auto dir = zookeeper_path(options_, name);
  if (!dir) {
    co_return tl::unexpected{std::move(dir.error())};
  }
  const engine::Ages ages;
  co_return co_await describe(std::move(name), *dir, ages);
}

engine::Task<Result<std::vector<LockInfo>>> ZookeeperRecipe::list(std::string prefix) {
  const std::string root = options_.root.empty() ? "/" : options_.root;
  const engine::Ages ages;
  ZookeeperReply listed = co_await session_->children(root);
  std::vector<LockInfo> all;
  if (!listed.ok() && listed.status != ZookeeperStatus::no_node) {
    co_return tl::unexpected{listed.error()};
  }
  for (const std::string& child : listed.children) {
    std::string name = zookeeper_name(options_, child);
    if (!name.starts_with(prefix) || is_ours_alone(child) ||
        (options_.root.empty() && child == "zookeeper")) {
      continue;
    }
    auto info = co_await describe(std::move(name), options_.root + "/" + child, ages);
    if (!info) {
      co_return tl::unexpected{std::move(info.error())};
    }
    if (!info->holders.empty() || !info->queue.empty()) {
      all.push_back(*std::move(info));
    }
  }
  std::ranges::sort(all, {}, &LockInfo::name);
  co_return all;
}

engine::Task<Outcome> ZookeeperRecipe::revoke(std::string dir, core::Revoke wanted) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Holding now = co_await holding(dir);
    if (now.error) {
      co_return Outcome{.status = Status::failed, .error = now.error};
    }
    std::set<std::string> guids;
    std::vector<ZookeeperOperation> steps;
    for (const LockNode& node : now.holders) {
      guids.insert(node.guid);
      std::vector<std::string> paths{node.name.empty() ? dir : dir + "/" + node.name};
      if (node.name.empty() && !node.guid.empty()) {
        paths.push_back(badge_of(dir, node.guid));
      }
      for (const std::string& path : paths) {
        const ZookeeperReply got = co_await session_->get(path);
        if (!got.ok() && path != paths.front()) {
          continue;
        }
        if (wanted.now) {
          steps.push_back({.what = ZookeeperOperation::What::remove, .path = path});
          continue;
        }
        auto note = PartyNote::parse(got.text);
        if (note) {
          note->revoked = true;
        }
        steps.push_back({.what = ZookeeperOperation::What::set,
                         .path = path,
                         .data = note ? note->text() : std::string{kCuratorsRevoke}});
      }
    }
    const auto count = static_cast<std::uint32_t>(guids.size());
    if (steps.empty()) {
      co_return engine::plain(Status::done, 0);
    }
    if (!wanted.now && options_.strategy != ZookeeperOptions::Strategy::simple) {
      now.note.revoked.assign(guids.begin(), guids.end());
      steps.push_back({.what = ZookeeperOperation::What::set,
                       .path = dir,
                       .data = now.note.text(),
                       .version = now.version});
    }
    const ZookeeperReply done = co_await session_->multi(std::move(steps));
    if (done.ok()) {
      co_return engine::plain(Status::done, count);
    }
    if (done.status != ZookeeperStatus::no_node && done.status != ZookeeperStatus::bad_version) {
      co_return zookeeper_failure(done);
    }
  }
  const Error busy{ErrorCode::unavailable, "zookeeper: the holders change all the time", {}};
  co_return Outcome{.status = Status::failed, .error = busy};
}

}  // namespace holdfast::engines
