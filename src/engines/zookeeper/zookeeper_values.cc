// Values with versions, as nodes: the version is the transaction that changed
// the node last (mzxid), the time that of the leader.
//
// A node is changed only if it is still the one that was read, by ZooKeeper's
// own count of changes. That count begins anew with every node, so nodes stay
// when their value is erased, and are removed later.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>
#include <utility>

#include "engine/value_text.h"
#include "engines/zookeeper/zookeeper_recipe.h"

namespace holdfast::engines {
namespace {

using engine::ValueText;
using std::chrono::microseconds;

constexpr int kAttempts = 50;
constexpr std::size_t kTidiedAtOnce = 64;

core::Micros micros_of(std::int64_t ms) {
  return static_cast<core::Micros>(ms) * 1000;
}

Error as_read(Error error) {
  error.code = error.code == ErrorCode::outcome_unknown ? ErrorCode::unavailable : error.code;
  return error;
}

core::Value value_of(ValueText text, const ZookeeperReply& node) {
  core::Value value;
  value.bytes = std::move(text.bytes);
  value.version = static_cast<std::uint64_t>(node.mzxid);
  value.written = micros_of(node.mtime_ms);
  value.hold_off = text.hold_off;
  return value;
}

// `now` is the leader's time.
void count_down(core::Value& value, core::Micros now) {
  const auto passed = microseconds{static_cast<std::int64_t>(now - std::min(now, value.written))};
  value.hold_off = std::max<core::Duration>(value.hold_off - passed, core::Duration::zero());
}

}  // namespace

std::string ZookeeperRecipe::value_path(std::string_view name) const {
  ZookeeperOptions names = options_;
  names.verbatim = false;
  names.root += "/%values";
  return zookeeper_path(names, name).value_or("");
}

// The leader's time is in what it wrote last.
engine::Task<Result<core::Micros>> ZookeeperRecipe::leader_time() {
  const std::string path = options_.root + "/%clock";
  ZookeeperReply written = co_await session_->set(path, "", -1);
  if (written.status == ZookeeperStatus::no_node) {
    LockNote nothing;
    const ZookeeperReply made = co_await make_lock(path, std::move(nothing));
    if (!made.ok()) {
      co_return tl::unexpected{as_read(made.error())};
    }
    written = co_await session_->set(path, "", -1);
  }
  if (!written.ok()) {
    co_return tl::unexpected{as_read(written.error())};
  }
  co_return micros_of(written.mtime_ms);
}

engine::Task<Result<std::optional<core::Value>>> ZookeeperRecipe::load_value(std::string name) {
  const std::string path = value_path(name);
  ZookeeperPair both{session_->sync(path), session_->get(path)};
  const auto [synced, node] = co_await both;
  std::optional<core::Value> value;
  if (node.status == ZookeeperStatus::no_node) {
    co_return value;
  }
  if (!node.ok()) {
    co_return tl::unexpected{as_read(node.error())};
  }
  auto text = ValueText::parse(node.text);
  if (!text) {
    co_return tl::unexpected{engine::not_a_value()};
  }
  value.emplace(value_of(*std::move(text), node));
  if (value->hold_off > core::Duration::zero()) {
    const auto now = co_await leader_time();
    if (!now) {
      co_return tl::unexpected{now.error()};
    }
    count_down(*value, *now);
  }
  co_return value;
}

// bad_version, node_exists: somebody was faster.
engine::Task<ZookeeperReply> ZookeeperRecipe::put_value(std::string path, std::string text,
                                                        ZookeeperReply before) {
  if (before.ok()) {
    co_return co_await session_->set(path, std::move(text), before.version);
  }
  ZookeeperReply made = co_await session_->create(path, text, ZookeeperMode::persistent);
  if (made.status == ZookeeperStatus::no_node) {
    LockNote nothing;
    std::string above = options_.root + "/%values";
    const ZookeeperReply parent = co_await make_lock(std::move(above), std::move(nothing));
    if (!parent.ok()) {
      co_return parent;
    }
    made = co_await session_->create(path, std::move(text), ZookeeperMode::persistent);
  }
  co_return made;
}

engine::Task<Result<core::ValueOutcome>> ZookeeperRecipe::write_value(core::ValueWrite write) {
  const std::string path = value_path(write.name);
  ValueText text{.writer = write.writer,
                 .written = base::wall_microseconds(),
                 .hold_off = write.hold_off,
                 .bytes = std::nullopt};
  if (write.bytes) {
    text.bytes.emplace(*write.bytes);
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ZookeeperPair both{session_->sync(path), session_->get(path)};
    auto [synced, node] = co_await both;
    if (!node.ok() && node.status != ZookeeperStatus::no_node) {
      co_return tl::unexpected{as_read(node.error())};
    }
    core::ValueOutcome now;
    if (node.ok()) {
      const auto there = ValueText::parse(node.text);
      if (!there) {
        co_return tl::unexpected{engine::not_a_value()};
      }
      now.applied = there->writer == write.writer;
      now.version = now.applied || there->bytes ? static_cast<std::uint64_t>(node.mzxid) : 0;
      now.written = micros_of(node.mtime_ms);
    }
    if (now.applied || now.version != write.expected.value_or(0)) {
      co_return now;
    }
    std::string encoded = text.text();
    const ZookeeperReply done = co_await put_value(path, std::move(encoded), std::move(node));
    if (done.ok()) {
      co_return core::ValueOutcome{.applied = true,
                                   .version = static_cast<std::uint64_t>(done.mzxid),
                                   .written = micros_of(done.mtime_ms)};
    }
    if (done.status != ZookeeperStatus::bad_version &&
        done.status != ZookeeperStatus::node_exists && done.status != ZookeeperStatus::no_node) {
      co_return tl::unexpected{done.error()};
    }
  }
  co_return tl::unexpected{
      Error{ErrorCode::unavailable, "zookeeper: the value changes all the time", std::nullopt}};
}

engine::Task<Result<std::vector<core::NamedValue>>> ZookeeperRecipe::list_values(
    std::string prefix) {
  const std::string root = options_.root + "/%values";
  ZookeeperOptions names = options_;
  names.verbatim = false;
  std::vector<core::NamedValue> values;
  const ZookeeperReply listed = co_await session_->children(root);
  if (listed.status == ZookeeperStatus::no_node) {
    co_return values;
  }
  if (!listed.ok()) {
    co_return tl::unexpected{as_read(listed.error())};
  }
  const auto now = co_await leader_time();
  if (!now) {
    co_return tl::unexpected{now.error()};
  }
  for (const std::string& child : listed.children) {
    core::NamedValue named;
    named.name = zookeeper_name(names, child);
    if (!named.name.starts_with(prefix)) {
      continue;
    }
    const ZookeeperReply node = co_await session_->get(root + "/" + child);
    auto text = node.ok() ? ValueText::parse(node.text) : std::nullopt;
    if (text && text->bytes) {
      named.value = value_of(*std::move(text), node);
      count_down(named.value, *now);
      values.push_back(std::move(named));
    }
  }
  std::ranges::sort(values, {}, &core::NamedValue::name);
  co_return values;
}

// Some at a time: to find what was erased, nodes must be read.
engine::Detached ZookeeperRecipe::tidy_values() {
  const auto self = weak_from_this().lock();
  if (!self) {
    co_return;
  }
  const std::string root = options_.root + "/%values";
  ZookeeperReply listed = co_await session_->children(root);
  if (!listed.ok() || listed.children.empty()) {
    co_return;
  }
  const std::size_t first = base::random_u64() % listed.children.size();
  const std::size_t count = std::min(listed.children.size(), kTidiedAtOnce);
  const core::Micros now = base::wall_microseconds();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string path = root + "/" + listed.children[(first + i) % listed.children.size()];
    const ZookeeperReply node = co_await session_->get(path);
    const auto text = node.ok() ? ValueText::parse(node.text) : std::nullopt;
    core::ValueRecord record;
    record.written = micros_of(node.mtime_ms);
    const bool old = text && !text->bytes && record.forgettable(now);
    if (old) {
      // As it was read: not if somebody has created it anew.
      std::vector<ZookeeperOperation> steps{
          {.what = ZookeeperOperation::What::remove, .path = path, .version = node.version}};
      const ZookeeperReply gone = co_await session_->multi(std::move(steps));
      if (!gone.ok()) {
        co_return;
      }
    }
  }
}

}  // namespace holdfast::engines
