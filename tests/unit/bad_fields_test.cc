// Every structure that callers fill in, and every mistake that can be made in
// it: invalid_argument, and the text names the field.
#include <gmock/gmock.h>
#include <holdfast/holdfast.h>
#include <algorithm>
#include <cctype>
#include <functional>
#include <string>
#include <vector>

#include "engine/registry.h"
#include "engines/relational/job_table.h"
#include "engines/relational/row_statement.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct BadField {
  std::string where;  // "TaskGuard_at_least_for"; the field is what the text names
  std::string field;
  std::function<Result<void>(Client&)> make;
};

template <typename T>
Result<void> outcome(Result<T> result) {
  return result.map([](const auto&) {});
}

Result<void> acquire(Client& client, const AcquireOptions& options) {
  return outcome(client.acquire("x", options));
}

Result<void> begin(Client& client, const TaskGuard& guard) {
  return outcome(begin_task(client, guard));
}

Result<void> work(
    Client& client, const std::string& name, const WorkerOptions& options,
    Worker::Work what = [](const std::stop_token&, std::optional<std::uint64_t>) {}) {
  try {
    const Worker worker{client, name, std::move(what), options};
    return {};
  } catch (const LockError& error) {
    return tl::unexpected{error.error()};
  }
}

Result<void> jobs(const std::function<void(JobTable&)>& spoil) {
  JobTable table;
  table.table = "jobs";
  spoil(table);
  return outcome(engines::quote(table, engines::kPostgresQuoting));
}

Result<void> row(const std::function<void(RowUpdate&)>& spoil) {
  RowUpdate update;
  update.table = "stock";
  update.set = {{"left", std::int64_t{1}}};
  update.key = {{"id", std::int64_t{7}}};
  spoil(update);
  return outcome(engines::relational::row_statement(update, {}));
}

Result<void> upgrade(Client& client, Duration wait) {
  auto lease = client.acquire("x", {.mode = Mode::shared});
  return lease ? lease->upgrade(wait) : outcome(std::move(lease));
}

const std::string kLong(kMaxNameBytes + 1, 'x');

std::vector<BadField> locks() {
  const auto with = [](AcquireOptions options) {
    return [options](Client& client) { return acquire(client, options); };
  };
  constexpr Mode kPermits = Mode::permits;
  return {
      {"Acquire_no_name", "name", [](Client& c) { return outcome(c.acquire("")); }},
      {"Acquire_long_name", "name", [](Client& c) { return outcome(c.acquire(kLong)); }},
      {"Acquire_ttl_negative", "ttl", with({.ttl = -1s})},
      {"Acquire_ttl_endless", "ttl", with({.ttl = Duration::max()})},
      {"Acquire_wait_negative", "wait", with({.wait = -1ns})},
      {"Acquire_max_hold_negative", "max_hold", with({.max_hold = -1s})},
      {"Acquire_grace_negative", "grace", with({.grace = -1s})},
      {"Acquire_grace_too_long", "grace", with({.ttl = 1s, .grace = 900ms})},
      {"Acquire_health_timeout", "health_timeout",
       with({.health_check = [] { return true; }, .health_timeout = -1s})},
      {"Acquire_hand_over", "hand_over", with({.hand_over = kMaxHandOver + 1})},
      {"Acquire_no_permits", "permits", with({.mode = kPermits, .permits = 0, .of = 3})},
      {"Acquire_permits_of_fewer", "permits", with({.mode = kPermits, .permits = 4, .of = 3})},
      {"Acquire_of_too_many", "of", with({.mode = kPermits, .permits = 1, .of = kMaxPermits + 1})},
      {"Acquire_permits_without_mode", "permits", with({.permits = 2})},
      {"Resize_to_nothing", "total", [](Client& c) { return c.resize("x", 0); }},
      {"Flush_negative", "at_most", [](Client& c) { return c.flush(-1s); }},
      {"Upgrade_wait_negative", "wait", [](Client& c) { return upgrade(c, -1s); }},
      {"Adopt_code", "code", [](Client& c) { return outcome(c.adopt("holdfast1-x")); }},
      {"Adopt_no_code", "code", [](Client& c) { return outcome(c.adopt("")); }},
      {"ClientOptions_backstop_poll", "backstop_poll",
       [](Client&) {
         return outcome(Client::open("memory:", {.label = "", .backstop_poll = -1s}));
       }},
      {"ClientOptions_spin", "spin",
       [](Client&) { return outcome(Client::open("memory:", {.label = "", .spin = 11ms})); }},
  };
}

std::vector<BadField> several() {
  return {
      {"AcquireAll_no_names", "names", [](Client& c) { return outcome(c.acquire_all({})); }},
      {"AcquireAll_twice", "names",
       [](Client& c) {
         return outcome(c.acquire_all({"a", "a"}));
       }},
      {"AcquireAll_empty_name", "name",
       [](Client& c) {
         return outcome(c.acquire_all({"a", ""}));
       }},
      {"AcquireAll_wait_negative", "wait",
       [](Client& c) { return outcome(c.acquire_all({"a"}, {.wait = -1s})); }},
      {"AcquireAll_permits", "permits",
       [](Client& c) {
         return outcome(c.acquire_all({{"a", Mode::permits, 3, 2}}));
       }},
      {"AcquireAll_no_client", "client",
       [](Client&) {
         return outcome(acquire_all(std::vector<WantAt>{{nullptr, "a"}}));
       }},
      {"ClaimAny_no_names", "names", [](Client& c) { return outcome(c.claim_any({})); }},
      {"ClaimAny_twice", "names",
       [](Client& c) {
         return outcome(c.claim_any({"a", "a"}));
       }},
      {"ClaimAny_long_name", "name", [](Client& c) { return outcome(c.claim_any({kLong})); }},
      {"ClaimAny_none", "at_most", [](Client& c) { return outcome(c.claim_any({"a"}, 0)); }},
      {"ClaimAny_ttl_negative", "ttl",
       [](Client& c) { return outcome(c.claim_any({"a"}, 1, {.ttl = -1s})); }},
  };
}

std::vector<BadField> tasks_and_workers() {
  const auto guard = [](TaskGuard made) { return [made](Client& c) { return begin(c, made); }; };
  const auto lead = [](WorkerOptions made) {
    return [made](Client& c) { return work(c, "x", made); };
  };
  return {
      {"TaskGuard_no_name", "name", guard({.name = "", .at_most_for = 1h})},
      {"TaskGuard_long_name", "name", guard({.name = kLong, .at_most_for = 1h})},
      {"TaskGuard_no_at_most_for", "at_most_for", guard({.name = "x"})},
      {"TaskGuard_at_most_for_negative", "at_most_for", guard({.name = "x", .at_most_for = -1s})},
      {"TaskGuard_at_least_for_negative", "at_least_for",
       guard({.name = "x", .at_most_for = 1h, .at_least_for = -1s})},
      {"TaskGuard_at_least_for_longer", "at_least_for",
       guard({.name = "x", .at_most_for = 1h, .at_least_for = 2h})},
      {"TaskGuard_once_per_negative", "once_per",
       guard({.name = "x", .at_most_for = 1h, .once_per = -1s})},
      {"TaskGuard_no_work", "work",
       [](Client& c) { return outcome(run_task(c, {.name = "x", .at_most_for = 1h}, nullptr)); }},
      {"ForgetTask_no_name", "name", [](Client& c) { return outcome(forget_task(c, "")); }},
      {"Worker_no_name", "name", [](Client& c) { return work(c, "", {}); }},
      {"Worker_no_work", "work", [](Client& c) { return work(c, "x", {}, nullptr); }},
      {"WorkerOptions_rest_negative", "rest", lead({.rest = -1s})},
      {"WorkerOptions_look_every_negative", "look_every", lead({.look_every = -1s})},
      {"WorkerOptions_ttl_negative", "ttl", lead({.lock = {.ttl = -1s}})},
      {"WorkerOptions_mode_shared", "mode", lead({.lock = {.mode = Mode::shared}})},
  };
}

std::vector<BadField> values_and_rows() {
  const auto value = [](const char* name) { return std::string{name}; };
  return {
      {"Versioned_no_name", "name",
       [=](Client& c) { return outcome(c.versioned(value("")).create("1")); }},
      {"Versioned_long_name", "name", [](Client& c) { return outcome(c.versioned(kLong).read()); }},
      {"Versioned_reserved_name", "name",
       [=](Client& c) { return outcome(c.versioned(value("holdfast:x")).create("1")); }},
      {"Versioned_expected", "expected",
       [=](Client& c) { return outcome(c.versioned(value("x")).compare_and_set("1", 0)); }},
      {"Versioned_value", "value",
       [=](Client& c) {
         return outcome(c.versioned(value("x")).create(std::string(kMaxValueBytes + 1, 'x')));
       }},
      {"Versioned_change", "change",
       [=](Client& c) { return outcome(c.versioned(value("x")).update(nullptr)); }},
      {"JobTable_table", "table", [](Client&) { return jobs([](auto& t) { t.table = ""; }); }},
      {"JobTable_key", "key", [](Client&) { return jobs([](auto& t) { t.key = ""; }); }},
      {"JobTable_status", "status", [](Client&) { return jobs([](auto& t) { t.status = ""; }); }},
      {"JobTable_taken", "taken", [](Client&) { return jobs([](auto& t) { t.taken = t.open; }); }},
      {"JobTable_claimed_by", "claimed_by",
       [](Client&) { return jobs([](auto& t) { t.claimed_by = ""; }); }},
      {"JobTable_again_after_negative", "again_after",
       [](Client&) { return jobs([](auto& t) { t.claimed_at = "at", t.again_after = -1s; }); }},
      {"JobTable_again_after_alone", "claimed_at",
       [](Client&) { return jobs([](auto& t) { t.again_after = 1s; }); }},
      {"JobTable_none", "at_most", [](Client&) { return engines::check_count(0); }},
      {"RowUpdate_table", "table", [](Client&) { return row([](auto& u) { u.table = ""; }); }},
      {"RowUpdate_no_set", "set", [](Client&) { return row([](auto& u) { u.set.clear(); }); }},
      {"RowUpdate_set_twice", "set",
       [](Client&) { return row([](auto& u) { u.set.push_back(u.set.front()); }); }},
      {"RowUpdate_sets_version", "set",
       [](Client&) { return row([](auto& u) {
                       u.set = {{"version", std::int64_t{1}}};
                     }); }},
      {"RowUpdate_no_key", "key", [](Client&) { return row([](auto& u) { u.key.clear(); }); }},
      {"RowUpdate_key_null", "key",
       [](Client&) { return row([](auto& u) { u.key.front().value = nullptr; }); }},
      {"RowUpdate_version_column", "version_column",
       [](Client&) { return row([](auto& u) { u.version_column = ""; }); }},
  };
}

// Options of stores come as text: unknown ones are never overlooked.
std::vector<BadField> urls() {
  std::vector<BadField> all;
  for (const engine::Registration& each : engine::registrations()) {
    const std::string url{each.example};
    const std::string more = url + (url.find('?') == std::string::npos ? "?" : "&") + "nonsense=1";
    std::string where = "Url_" + std::string{each.scheme};
    std::ranges::replace_if(
        where, [](char c) { return !std::isalnum(c); }, '_');
    const bool none = each.scheme == "memory";  // has no options at all
    all.push_back({where, none ? "nothing else" : "nonsense",
                   [more](Client&) { return outcome(Client::open(more)); }});
  }
  return all;
}

std::vector<BadField> all_mistakes() {
  std::vector<BadField> all;
  for (auto& part : {locks(), several(), tasks_and_workers(), values_and_rows(), urls()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

class BadFields : public ::testing::TestWithParam<BadField> {};
INSTANTIATE_TEST_SUITE_P(, BadFields, ::testing::ValuesIn(all_mistakes()),
                         [](const auto& mistake) { return mistake.param.where; });

TEST_P(BadFields, AreNamed) {
  auto client = Client::open("memory:");
  ASSERT_TRUE(client) << client.error();
  const auto refused = GetParam().make(*client);
  ASSERT_FALSE(refused) << "accepted";
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument) << refused.error();
  EXPECT_THAT(refused.error().text, HasSubstr(GetParam().field));
  EXPECT_TRUE(client->list()->empty()) << "something is held";
}

}  // namespace
}  // namespace holdfast
