#pragma once

#include <holdfast/client.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/fault_proxy.h"
#include "support/server.h"

namespace holdfast::test {

// What is not installed, of ZooKeeper or etcd.
std::optional<std::string> missing_quorum(const std::string& kind);

// Three servers of one kind that decide by majority.
class QuorumServers {
 public:
  enum class Lines { plain, third_can_be_cut, all_can_be_cut };
  // third_can_be_cut: a ZooKeeper whose third server follows another, over
  // lines that can be cut. all_can_be_cut: an etcd.
  explicit QuorumServers(std::string kind, Lines lines = Lines::plain);

  PrivateServer& operator[](std::size_t index) { return *servers_.at(index); }
  std::size_t size() const noexcept { return servers_.size(); }

  // How to reach those, or all; more options begin with "&".
  std::string url(const std::vector<std::size_t>& which = {}, const std::string& more = "") const;
  // Waits until it can be opened.
  Client open(const std::vector<std::size_t>& which = {}, const std::string& more = "") const;

  // "leader" or "follower", as the server itself says; else "".
  std::string role(std::size_t index) const;
  // Waits for one.
  std::size_t leader() const;

  void cut_off_third();
  // From the other two, in both directions; clients still reach it.
  void cut_off(std::size_t index);
  void rejoin();

 private:
  std::string about(std::size_t index) const;

  std::string kind_;
  std::vector<std::string> clients_;  // ports
  std::vector<std::unique_ptr<FaultProxy>> lines_;
  std::vector<std::unique_ptr<PrivateServer>> servers_;
};

}  // namespace holdfast::test
