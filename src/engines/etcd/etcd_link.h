#pragma once

#include <holdfast/error.h>
#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "base/time.h"
#include "engine/url.h"
#include "engines/tls/tls_session.h"

namespace holdfast::engines {

// "host:port", as messages and headers spell it.
std::string etcd_authority(const engine::Url::Host& host);

// What poll(2) found by then, or 0.
int poll_until(int fd, short events, base::Time until);

// Bytes to and from one server, in TLS or as they are. Not thread-safe.
class EtcdLink {
 public:
  // Blocks. With TLS (not null) both sides have agreed on HTTP/2 afterwards.
  // unauthorized: a certificate was refused.
  static Result<std::unique_ptr<EtcdLink>> connect(const engine::Url::Host& host, Tls* tls,
                                                   base::Time until);

  int fd() const noexcept { return socket_.get(); }
  bool is_secret() const noexcept { return tls_ != nullptr; }
  bool has_unsent() const noexcept { return !unsent_.empty(); }

  // These never block. Sends `bytes` after what is left of earlier ones, as far
  // as the socket takes them.
  Result<void> send(std::string bytes);
  // Appends what has come.
  Result<void> receive(std::string& bytes);

 private:
  explicit EtcdLink(base::FileDescriptor socket) : socket_{std::move(socket)} {}
  Result<void> shake_hands(Tls& tls, const engine::Url::Host& host, base::Time until);

  base::FileDescriptor socket_;
  std::unique_ptr<Tls::Session> tls_;
  std::string unsent_;  // as it goes over the wire
};

}  // namespace holdfast::engines
