#include "support/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/ids.h"
#include "core/commands.h"
#include "support/eventually.h"

namespace holdfast::test {

Harness::Harness() : prefix_{"t-" + base::Id::random().hex().substr(0, 12) + "-"} {}

namespace {

std::unique_ptr<Client> open_or_throw(const std::string& url, ClientOptions options) {
  auto client = Client::open(url, std::move(options));
  if (!client) throw std::runtime_error{url + ": " + client.error().text};
  return std::make_unique<Client>(std::move(*client));
}

}  // namespace

std::unique_ptr<Client> Harness::open(ClientOptions options) const {
  return open_or_throw(url(), std::move(options));
}

std::unique_ptr<Client> Harness::open_impatient(std::chrono::milliseconds timeout) const {
  return open_or_throw(impatient_url(std::to_string(timeout.count()) + "ms"), {});
}

std::unique_ptr<Client> Harness::open_observer() const {
  return open_or_throw(observer_url(), {});
}

std::string Harness::fresh_name() {
  return prefix_ + std::to_string(++names_);
}

void Harness::let_expire(const Lease& lease) {
  if (!observer_) observer_ = open_observer();
  const bool ended = eventually([&] {
    auto info = observer_->show(lease.name());
    return info && !is_held(*info, lease);
  });
  if (!ended) throw std::runtime_error{"the store never expired the lease of " + lease.name()};
}

bool needs_own_server() {
  const auto* suite = ::testing::UnitTest::GetInstance()->current_test_suite();
  return suite != nullptr && std::string_view{suite->name()}.find("Outage") != std::string::npos;
}

bool is_held(const LockInfo& info, const Lease& lease) {
  return std::any_of(info.holders.begin(), info.holders.end(), [&](const HolderInfo& holder) {
    if (holder.expires_in <= Duration::zero()) return false;
    if (!holder.token || !lease.token()) return true;  // nothing tells them apart
    // Hand-overs inside the holder's process count on from the store's token.
    return *lease.token() >= *holder.token && *lease.token() < *holder.token + core::kTokenStride;
  });
}

std::string HarnessEntry::label() const {
  std::string label{engine};
  if (!strategy.empty()) label.append("_").append(strategy);
  return label;
}

std::ostream& operator<<(std::ostream& out, const HarnessEntry& entry) {
  return out << entry.label();
}

std::span<const HarnessEntry> harnesses() {
  static const std::vector<HarnessEntry> all = [] {
    std::vector<HarnessEntry> list;
    list.push_back(memory_harness());
    list.push_back(sqlite_harness());
#ifndef HOLDFAST_WITHOUT_MYSQL
    list.push_back(mysql_lease_harness());
    list.push_back(mysql_shedlock_harness());
    list.push_back(mysql_insert_harness());
    list.push_back(mysql_timestamp_harness());
    list.push_back(mysql_slots_harness());
    list.push_back(mysql_status_harness());
    list.push_back(mysql_row_harness());
    list.push_back(mysql_upsert_harness());
    list.push_back(mysql_advisory_harness());
#endif
#ifndef HOLDFAST_WITHOUT_POSTGRES
    list.push_back(postgres_lease_harness());
    list.push_back(postgres_shedlock_harness());
    list.push_back(postgres_row_harness());
    list.push_back(postgres_advisory_harness());
#endif
#ifndef HOLDFAST_WITHOUT_REDIS
    list.push_back(redis_fair_harness());
    list.push_back(redis_simple_harness());
    list.push_back(redis_redisson_harness());
    list.push_back(redlock_harness());
#endif
#ifndef HOLDFAST_WITHOUT_ZOOKEEPER
    list.push_back(zookeeper_harness());
    list.push_back(zookeeper_simple_harness());
#endif
#ifndef HOLDFAST_WITHOUT_ETCD
    list.push_back(etcd_harness());
#endif
    return list;
  }();
  return all;
}

std::vector<HarnessEntry> harnesses_with(bool Claims::*promise) {
  return harnesses_with(promise, promise);
}

std::vector<HarnessEntry> harnesses_with(bool Claims::*one, bool Claims::*other) {
  std::vector<HarnessEntry> found;
  for (const HarnessEntry& entry : harnesses()) {
    if (entry.claims.*one && entry.claims.*other) found.push_back(entry);
  }
  return found;
}

std::vector<HarnessEntry> harnesses_without(bool Claims::*promise) {
  std::vector<HarnessEntry> found;
  for (const HarnessEntry& entry : harnesses()) {
    if (!(entry.claims.*promise)) found.push_back(entry);
  }
  return found;
}

}  // namespace holdfast::test
