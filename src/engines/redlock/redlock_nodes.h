#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "engines/redlock/redlock_node.h"

namespace holdfast::engines {

// All the servers, and one descriptor that tells when one of them has something
// to say. Not thread-safe.
class RedlockNodes {
 public:
  explicit RedlockNodes(std::vector<std::unique_ptr<RedlockNode>> nodes);

  std::size_t size() const noexcept { return nodes_.size(); }
  std::size_t ready() const noexcept;  // how many
  RedlockNode& operator[](std::size_t node) const noexcept { return *nodes_[node]; }
  auto begin() const noexcept { return nodes_.begin(); }
  auto end() const noexcept { return nodes_.end(); }

  int fd() const noexcept { return events_.get(); }
  // Sockets come and go: to be called before anybody waits for fd().
  void watch();
  // What poll(2) would find at each node, in this order; valid until the next call.
  const std::vector<short>& look();

  // Nobody waits for the answers.
  void tell(std::uint64_t tag, std::string_view call);

 private:
  struct Watched {
    std::uint64_t socket = 0;
    int fd = -1;
    short events = 0;
    bool operator==(const Watched&) const = default;
  };

  std::vector<std::unique_ptr<RedlockNode>> nodes_;
  base::FileDescriptor events_;  // an epoll of their sockets
  std::vector<Watched> watched_;
  std::vector<short> found_;
};

}  // namespace holdfast::engines
