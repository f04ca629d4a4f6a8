// What `holdfast doctor` finds out about a Redis.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <future>
#include <map>
#include <string>
#include <utility>

#include "engine/batch.h"
#include "engine/credentials.h"
#include "engines/redis/redis_engine.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

constexpr int kOldestMajor = 6;
constexpr base::Duration kSlow = 20ms;
constexpr std::int64_t kSkew = 1'000'000;  // microseconds

using Facts = std::map<std::string, std::string>;

Finding make(Finding::Level level, std::string topic, std::string text, std::string advice = "") {
  return {.level = level,
          .topic = std::move(topic),
          .text = std::move(text),
          .advice = std::move(advice)};
}
Finding ok(std::string topic, std::string text) {
  return make(Finding::Level::ok, std::move(topic), std::move(text));
}
Finding warning(std::string topic, std::string text, std::string advice) {
  return make(Finding::Level::warning, std::move(topic), std::move(text), std::move(advice));
}
Finding problem(std::string topic, std::string text, std::string advice) {
  return make(Finding::Level::problem, std::move(topic), std::move(text), std::move(advice));
}

std::string words(std::initializer_list<std::string_view> all) {
  std::string text;
  append_resp_head(text, all.size());
  for (const std::string_view word : all) {
    append_resp_word(text, word);
  }
  return text;
}

// INFO is lines of "key:value".
Facts parse_info(const std::string& text) {
  Facts facts;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find("\r\n", at), text.size());
    const std::string line = text.substr(at, end - at);
    if (const std::size_t colon = line.find(':'); colon != std::string::npos) {
      facts[line.substr(0, colon)] = line.substr(colon + 1);
    }
    at = end + 2;
  }
  return facts;
}

Finding about_version(const Facts& facts) {
  const auto found = facts.find("redis_version");
  const std::string version = found == facts.end() ? "unknown" : found->second;
  return std::atoi(version.c_str()) >= kOldestMajor
             ? ok("version", version)
             : warning("version", version, "tested with Redis 6 and later");
}

Finding about_eviction(const Facts& facts) {
  const auto policy = facts.find("maxmemory_policy");
  const auto limit = facts.find("maxmemory");
  if (policy == facts.end() || policy->second == "noeviction") {
    return ok("eviction", "none: Redis never deletes a lock to make room");
  }
  const std::string text = policy->second + ": Redis deletes locks when its memory is full";
  return limit != facts.end() && limit->second != "0"
             ? problem("eviction", text, "set maxmemory-policy to noeviction")
             : warning("eviction", text + "; it has no limit of memory yet",
                       "set maxmemory-policy to noeviction");
}

Finding about_persistence(const Facts& facts) {
  const auto log = facts.find("aof_enabled");
  if (log != facts.end() && log->second == "1") {
    return ok("persistence", "append-only file: locks survive a restart, as far as it was synced");
  }
  return ok("persistence", "a restart frees all locks; tokens go on with the clock");
}

Finding about_replicas(const Facts& facts, unsigned wait_replicas) {
  const auto role = facts.find("role");
  if (role != facts.end() && role->second != "master") {
    return problem("replication", "this server is a replica", "name the master, or the sentinels");
  }
  const auto count = facts.find("connected_slaves");
  const int replicas = count == facts.end() ? 0 : std::atoi(count->second.c_str());
  if (replicas == 0) {
    return wait_replicas == 0
               ? ok("replication", "no replicas")
               : problem("replication",
                         "no replicas, but wait_replicas asks for " + std::to_string(wait_replicas),
                         "connect replicas, or leave wait_replicas out");
  }
  const std::string text = std::to_string(replicas) + " replicas";
  return wait_replicas > 0
             ? ok("replication", text + "; grants wait for " + std::to_string(wait_replicas))
             : warning("replication", text + "; a failover may forget the newest grants",
                       "check tokens at what you protect; wait_replicas=1 makes it rarer");
}

Finding about_secrecy(const RedisOptions& options) {
  if (options.access.insecure) {
    return warning("secrecy", "insecure: others may listen or stand in between",
                   "use rediss:// with a certificate that can be verified");
  }
  return ok("secrecy", options.access.tls ? "TLS, verified" : "on this machine");
}

}  // namespace

std::vector<Finding> RedisEngine::doctor() {
  if (inherited()) {
    return {problem("store", engine::inherited_by_fork().text, "open it again in the child")};
  }
  auto info = ask(words({"INFO"}));
  if (!info) {
    return {problem("store", info.error().text, "see the message")};
  }
  const Facts facts = parse_info(info->text);
  std::vector<Finding> findings{
      about_version(facts), about_eviction(facts), about_persistence(facts),
      about_replicas(facts, options_.wait_replicas), about_secrecy(options_)};
  check_clock(findings);
  findings.push_back(check_scripts());
  findings.push_back(bell_->is_listening()
                         ? ok("doorbell", "we are told at once")
                         : problem("doorbell", "we cannot listen to our channel",
                                   "let the user subscribe to " + options_.prefix + "*"));
  return findings;
}

// The clock and how long an answer takes.
void RedisEngine::check_clock(std::vector<Finding>& findings) {
  const base::Time before = base::BootClock::now();
  const auto time = ask(words({"TIME"}));
  const base::Duration took = base::BootClock::now() - before;
  if (!time || time->items.size() != 2) {
    findings.push_back(
        problem("clock", time ? "no answer to TIME" : time.error().text, "allow TIME"));
    return;
  }
  const std::int64_t theirs =
      std::atoll(time->items[0].text.c_str()) * 1'000'000 + std::atoll(time->items[1].text.c_str());
  const std::int64_t apart =
      std::abs(theirs - static_cast<std::int64_t>(base::wall_microseconds()));
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  const std::string text = "an answer takes " + std::to_string(micros) + " us";
  const std::string skew = std::to_string(apart / 1'000) + " ms apart from ours";
  findings.push_back(apart > kSkew
                         ? warning("clock", skew,
                                   "leases do not mind; tokens start at its clock: never set it "
                                   "back")
                         : ok("clock", skew + "; only the server's decides"));
  findings.push_back(took > kSlow
                         ? warning("latency", text, "bring the server closer, or use longer ttls")
                         : ok("latency", text));
}

// A lock that nobody else uses, taken and given back.
Finding RedisEngine::check_scripts() {
  const core::RequestId id = core::RequestId::random();
  core::Acquire acquire;
  acquire.id = id;
  acquire.session = client_.session;
  acquire.ttl = 1s;
  acquire.window = 1s;
  const std::string name = "doctor-" + id.hex();
  const std::vector<core::Command> batch{{name, acquire}, {name, core::Release{id}}};
  const std::vector<std::size_t> both{0, 1};
  std::string call;
  strategy_->append_call(call, batch, both, true);
  const auto reply = ask(call);
  if (!reply) {
    return problem("scripts", reply.error().text,
                   "`holdfast init --print` shows the rights that the user needs");
  }
  return ok("scripts", "a lock was taken and given back");
}

}  // namespace holdfast::engines
