#pragma once

#include <holdfast/client.h>
#include <holdfast/lease.h>
#include <holdfast/options.h>
#include <memory>
#include <string>

namespace holdfast {

// At most `total` permits of a name are out in the whole cluster. Each
// acquisition is a Lease; letting go of it gives the permits back.
// Thread-safe. options.mode, permits and of do not apply.
class Semaphore {
 public:
  // Throws LockError: invalid_argument, unsupported.
  Semaphore(Client& client, std::string name, std::uint32_t total, AcquireOptions options = {});

  // Waits as options.wait says. Errors as Client::acquire; invalid_argument
  // if the name is in use with another total (see Client::resize).
  Result<Lease> acquire(std::uint32_t permits = 1);
  Result<Lease> acquire_for(Duration wait, std::uint32_t permits = 1);
  Result<Lease> try_acquire(std::uint32_t permits = 1);

  const std::string& name() const noexcept { return name_; }
  std::uint32_t total() const noexcept { return options_.of; }

 private:
  std::shared_ptr<client::Service> service_;
  std::string name_;
  AcquireOptions options_;
};

}  // namespace holdfast
