#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace baselines {

using Statements = std::vector<std::string>;

// A lock that a database server has of its own. A connection holds it and ends
// it; there is no lease.
struct NativeLock {
  std::function<std::function<void(const std::string& sql)>()> connect;
  std::function<Statements(const std::string& name)> take;  // waits
  std::function<Statements(const std::string& name)> free;
  // Where names must be there before they are taken; may be empty.
  std::function<Statements(const std::vector<std::string>& names)> prepare;
};

NativeLock mysql_get_lock(const std::string& port);
NativeLock mysql_for_update(const std::string& port);
NativeLock postgres_advisory_lock(const std::string& conninfo);

// U1, U32: cycles/s. C16: hand-overs/s. P2: release to entry, the median in µs.
double measure_native_lock(const NativeLock& lock, std::string_view scenario, double seconds);

}  // namespace baselines
