// The cluster as its members describe it.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <charconv>
#include <string>

#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

constexpr std::string_view kStatus = "/etcdserverpb.Maintenance/Status";
constexpr std::string_view kRange = "/etcdserverpb.KV/Range";

Finding finding(Finding::Level level, std::string topic, std::string text,
                std::string advice = "") {
  return {level, std::move(topic), std::move(text), std::move(advice)};
}

// "3.4.23" -> 3004023, to compare.
int version_number(const std::string& text) {
  int number = 0;
  int part = 0;
  for (const char c : text + ".") {
    if (c == '.') {
      number = number * 1000 + part;
      part = 0;
    } else if (c >= '0' && c <= '9') {
      part = part * 10 + (c - '0');
    }
  }
  return number;
}

}  // namespace

engine::Task<std::vector<Finding>> EtcdRecipe::examine() {
  constexpr int kOldest = 3004000;
  constexpr int kCorrupting = 3005000;  // 3.5.0 to 3.5.2 could lose data after a crash
  constexpr int kRepaired = 3005003;
  std::vector<Finding> findings;
  const EtcdRequest::Reply status = co_await session_->call(kStatus, "");
  const auto said = status.ok() ? decode_status(status.body) : std::nullopt;
  if (!said) {
    findings.push_back(finding(Finding::Level::problem, "connection", status.error().text,
                               "check the hosts, and that most members of the cluster run"));
    co_return findings;
  }
  findings.push_back(finding(Finding::Level::ok, "connection", "to " + session_->server()));
  if (said->leader == 0) {
    findings.push_back(finding(Finding::Level::problem, "leader", "the cluster has none",
                               "start the missing members: a majority must run"));
  } else {
    findings.push_back(finding(
        Finding::Level::ok, "leader",
        said->leader == said->member ? "the member we talk to" : "another member than ours"));
  }
  const int version = version_number(said->version);
  if (version < kOldest || (version >= kCorrupting && version < kRepaired)) {
    findings.push_back(finding(Finding::Level::warning, "version", "etcd " + said->version,
                               version < kOldest
                                   ? "use 3.4 or later"
                                   : "3.5.0 to 3.5.2 may lose data in a crash; update"));
  } else {
    findings.push_back(finding(Finding::Level::ok, "version", "etcd " + said->version));
  }
  const base::Time before = base::BootClock::now();
  std::string nothing = encode_range({.key = options_.prefix + "%"});
  const EtcdRequest::Reply read = co_await session_->call(kRange, std::move(nothing));
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(base::BootClock::now() - before);
  if (read.ok()) {
    findings.push_back(finding(Finding::Level::ok, "latency",
                               "a read by quorum took " + std::to_string(took.count()) + " us"));
  } else {
    findings.push_back(finding(Finding::Level::problem, "read", read.error().text,
                               "check the quorum, and the user's permissions"));
  }
  co_return findings;
}

}  // namespace holdfast::engines
