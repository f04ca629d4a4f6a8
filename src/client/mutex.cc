#include <holdfast/mutex.h>
#include <holdfast/semaphore.h>
#include <holdfast/shared_mutex.h>

#include <utility>

#include "client/service.h"
#include "client/thread_leases.h"
#include "client/wish.h"

namespace holdfast {
namespace {

std::optional<Duration> at_least_zero(Duration wait) {
  return std::max(wait, Duration::zero());
}

// Waiting for ever cannot end with "busy".
void lock_or_throw(client::ThreadLeases& leases, Mode mode) {
  leases.lock(mode, std::nullopt);
}

}  // namespace

Mutex::Mutex(Client& client, std::string name, AcquireOptions options, Reentrancy reentrancy)
    : leases_{std::make_unique<client::ThreadLeases>(client.service_, std::move(name),
                                                     std::move(options), reentrancy)} {
  leases_->require(Mode::exclusive);
}
Mutex::~Mutex() = default;
void Mutex::lock() {
  lock_or_throw(*leases_, Mode::exclusive);
}
bool Mutex::try_lock() {
  return leases_->lock(Mode::exclusive, Duration::zero());
}
bool Mutex::try_lock_for(Duration wait) {
  return leases_->lock(Mode::exclusive, at_least_zero(wait));
}
void Mutex::unlock() noexcept {
  leases_->unlock();
}
const Lease* Mutex::lease() const noexcept {
  return leases_->current();
}
const std::string& Mutex::name() const noexcept {
  return leases_->name();
}

SharedMutex::SharedMutex(Client& client, std::string name, AcquireOptions options,
                         Reentrancy reentrancy)
    : leases_{std::make_unique<client::ThreadLeases>(client.service_, std::move(name),
                                                     std::move(options), reentrancy)} {
  leases_->require(Mode::shared);
  leases_->require(Mode::exclusive);
}
SharedMutex::~SharedMutex() = default;
void SharedMutex::lock() {
  lock_or_throw(*leases_, Mode::exclusive);
}
bool SharedMutex::try_lock() {
  return leases_->lock(Mode::exclusive, Duration::zero());
}
bool SharedMutex::try_lock_for(Duration wait) {
  return leases_->lock(Mode::exclusive, at_least_zero(wait));
}
void SharedMutex::unlock() noexcept {
  leases_->unlock();
}
void SharedMutex::lock_shared() {
  lock_or_throw(*leases_, Mode::shared);
}
bool SharedMutex::try_lock_shared() {
  return leases_->lock(Mode::shared, Duration::zero());
}
bool SharedMutex::try_lock_shared_for(Duration wait) {
  return leases_->lock(Mode::shared, at_least_zero(wait));
}
void SharedMutex::unlock_shared() noexcept {
  leases_->unlock();
}
const Lease* SharedMutex::lease() const noexcept {
  return leases_->current();
}
const std::string& SharedMutex::name() const noexcept {
  return leases_->name();
}

Semaphore::Semaphore(Client& client, std::string name, std::uint32_t total, AcquireOptions options)
    : service_{client.service_}, name_{std::move(name)}, options_{std::move(options)} {
  options_.mode = Mode::permits;
  options_.permits = 1;
  options_.of = total;
  if (auto wish = client::make_wish(name_, options_, service_->capabilities()); !wish) {
    throw LockError{std::move(wish.error())};
  }
}

Result<Lease> Semaphore::acquire(std::uint32_t permits) {
  AcquireOptions options = options_;
  options.permits = permits;
  return service_->acquire(name_, options);
}

Result<Lease> Semaphore::acquire_for(Duration wait, std::uint32_t permits) {
  AcquireOptions options = options_;
  options.permits = permits;
  options.wait = at_least_zero(wait);
  return service_->acquire(name_, options);
}

Result<Lease> Semaphore::try_acquire(std::uint32_t permits) {
  return acquire_for(Duration::zero(), permits);
}

}  // namespace holdfast
