#pragma once

#include <holdfast/error.h>
#include <memory>
#include <string>
#include <string_view>

// TLS for engines whose protocol we speak ourselves. It is a filter of bytes: it
// never touches a socket, so that ours stays non-blocking and a broken one raises
// no signal. The only place that knows OpenSSL's part for connections.
namespace holdfast::engines {

struct TlsOptions {
  bool verify = true;            // the server's certificate, and that it is for this host
  std::string ca_file = {};      // who may sign it; empty: the system's authorities
  std::string certificate = {};  // ours, if the server wants one: a file ...
  std::string key = {};          // ... and that of its key
  std::string protocol = {};     // to agree upon (ALPN), such as "h2"; empty: none
};

// What all connections of an engine share. Thread-safe.
class Tls {
 public:
  // invalid_argument: a file that cannot be used.
  static Result<std::shared_ptr<Tls>> make(const TlsOptions& options);
  virtual ~Tls() = default;
  Tls() = default;
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // One connection's. unauthorized: a certificate was refused, theirs or ours.
  class Session {
   public:
    virtual ~Session() = default;
    Session() = default;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Appends to `out` what must go to the peer, and to `plain` what it said.
    virtual Result<void> receive(std::string_view from_peer, std::string& plain,
                                 std::string& out) = 0;
    // Takes `plain` away as soon as it can be sent.
    virtual Result<void> send(std::string& plain, std::string& out) = 0;
    // Both sides know each other, and `plain` would be sent.
    virtual bool is_ready() const = 0;
    // What was agreed upon; empty: nothing.
    virtual std::string protocol() const = 0;
  };
  virtual Result<std::unique_ptr<Session>> connect(const std::string& host) = 0;
};

}  // namespace holdfast::engines
