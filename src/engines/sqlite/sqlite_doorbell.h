#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "core/commands.h"
#include "engine/engine.h"

namespace holdfast::engines {

// A Unix datagram socket in a directory beside the database, named after the
// session: whoever grants a lock tells the session so. Thread-safe.
class SqliteDoorbell {
 public:
  // Never fails: without a socket, fd() is -1 and the backstop poll serves.
  SqliteDoorbell(const std::string& database, const core::SessionId& session);

  int fd() const noexcept { return socket_.get(); }
  std::vector<engine::Ring> answer();

  // Does not block. False if it certainly did not reach the session.
  bool ring(const core::SessionId& session, std::span<const engine::Ring> rings);

  // Whether a process listens there.
  bool is_alive(const core::SessionId& session) const;
  // Removes the socket that a dead session left behind.
  void remove(const core::SessionId& session) const;
  // Removes sockets of dead processes that never told the database about them.
  void remove_strays() const;

  // Takes the socket away, and the directory with the last one. Not for a
  // forked child.
  void say_goodbye() noexcept;

 private:
  bool listen(const std::string& database);
  bool send_to(const core::SessionId& session, std::span<const char> datagram);

  const core::SessionId session_;
  std::string directory_;
  base::FileDescriptor directory_fd_;
  base::FileDescriptor socket_;

  // To whom we rang last, and since the second time a socket connected there:
  // neighbours in a queue ring at each other again and again, and to look up
  // an address that is not in the processor's cache takes most of a ring.
  std::mutex mutex_;
  core::SessionId neighbour_;
  base::FileDescriptor line_;
};

}  // namespace holdfast::engines
