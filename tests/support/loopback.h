#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/file_descriptor.h"

// Plain TCP for tests of the fault proxy.
namespace holdfast::test {

// A connection that waits for its bytes, but not for ever.
class Dialer {
 public:
  explicit Dialer(std::uint16_t port);

  bool connected() const noexcept { return error_ == 0; }
  int error() const noexcept { return error_; }  // of the last call that failed

  bool send(const std::string& bytes);
  // Exactly so many bytes; fewer if the connection ended first.
  std::string receive(std::size_t bytes);
  // What is there, without waiting.
  std::string peek();
  // "end" after an orderly close, "reset" after RST; waits for it.
  std::string ending();
  void finish();  // no more requests; replies may still come

 private:
  base::FileDescriptor fd_;
  int error_ = 0;
};

// Says back whatever it hears, in upper case; ends when the object does.
class EchoServer {
 public:
  EchoServer();
  ~EchoServer();
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  std::string heard() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace holdfast::test
