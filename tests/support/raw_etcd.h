#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

// What an etcd says to those who ask it by its own tools.
class RawEtcd {
 public:
  explicit RawEtcd(std::string port) : port_{std::move(port)} {}

  std::string etcdctl(const std::vector<std::string>& words) const;
  std::vector<std::string> keys_below(const std::string& prefix) const;
  // How often that method was called so far: "Txn".
  std::uint64_t calls_of(const std::string& method) const;
  // How many are set up now, by whomever.
  std::uint64_t watches() const;

 private:
  // Of what it counts, the sum of all whose line has this in it.
  std::uint64_t sum_of(const std::string& metric, const std::string& words) const;
  const std::string port_;
};

// The lease that a key of ours hangs on, in hex.
std::string etcd_lease_of(const std::string& key);

}  // namespace holdfast::test
