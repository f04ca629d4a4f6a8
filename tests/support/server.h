#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

// Real servers on loopback, started by tools/server.py; its page says which.
namespace holdfast::test {

using ServerFacts = std::map<std::string, std::string>;

// The server of that kind that all test processes of this machine share. It
// runs from the first call on, and ends by itself some time after the last
// process that asked has ended. Throws if it does not start.
const ServerFacts& shared_server(const std::string& kind);
std::string shared_server_port(const std::string& kind);

// A server of this test's own, to be broken at will. Ends with the object.
class PrivateServer {
 public:
  // Options as tools/servers/<kind>.py names them: "durable=1".
  explicit PrivateServer(std::string kind, std::vector<std::string> options = {});
  ~PrivateServer();
  PrivateServer(const PrivateServer&) = delete;
  PrivateServer& operator=(const PrivateServer&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  const std::string& fact(const std::string& key) const { return facts_.at(key); }

  void signal(int number) const;  // to the server itself
  void kill();                    // SIGKILL: whatever was not on disk is gone
  void start();                   // again, with the same data and port

 private:
  std::string kind_;
  std::vector<std::string> options_;
  TempDir dir_;
  std::uint16_t port_ = 0;
  ServerFacts facts_;
  std::optional<Process> supervisor_;
};

// Is the program there? For HarnessEntry::missing.
std::optional<std::string> missing_program(const std::string& program);

}  // namespace holdfast::test
