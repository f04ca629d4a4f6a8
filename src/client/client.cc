#include <holdfast/client.h>

#include <utility>

#include "base/ids.h"
#include "client/service.h"
#include "client/store_id.h"

namespace holdfast {
Owner Owner::make() {
  return Owner{base::random_u64()};
}

Result<Client> Client::open(std::string_view url, ClientOptions options) {
  auto service = client::Service::open(url, options);
  if (!service) {
    return tl::unexpected{std::move(service.error())};
  }
  return Client{std::move(*service)};
}

Client::Client(std::shared_ptr<client::Service> service) noexcept : service_{std::move(service)} {}
Client::Client(Client&&) noexcept = default;

Client& Client::operator=(Client&& other) noexcept {
  std::swap(service_, other.service_);
  return *this;
}

Client::~Client() {
  if (service_ != nullptr && service_->is_ours()) {
    service_->cancel_async();
    static_cast<void>(service_->flush(kDrainTime));
  }
}

Result<Lease> Client::acquire(std::string_view name, const AcquireOptions& options) {
  return service_->acquire(name, options);
}

Result<Lease> Client::try_acquire(std::string_view name, AcquireOptions options) {
  options.wait = Duration::zero();
  return service_->acquire(name, options);
}

void Client::acquire_then(std::string_view name, const AcquireOptions& options,
                          std::function<void(Result<Lease>)> done) {
  service_->acquire_then(name, options, std::move(done));
}

Versioned Client::versioned(std::string name) {
  return {service_, std::move(name)};
}

Result<void> Client::flush(Duration at_most) {
  if (at_most < Duration::zero()) {
    return fail(ErrorCode::invalid_argument, "at_most is negative; use zero not to wait at all");
  }
  return service_->flush(at_most);
}

const Capabilities& Client::capabilities() const noexcept {
  return service_->capabilities();
}

Result<std::vector<LockInfo>> Client::list(std::string_view prefix) {
  return service_->engine().and_then([&](auto* engine) { return engine->list(prefix); });
}

Result<LockInfo> Client::show(std::string_view name) {
  return service_->engine().and_then([&](auto* engine) { return engine->show(name); });
}

Result<std::uint32_t> Client::force_release(std::string_view name, Force how) {
  return service_->ask(name, core::Revoke{how == Force::now});
}

Result<void> Client::resize(std::string_view name, std::uint32_t total) {
  if (total == 0 || total > kMaxPermits) {
    return fail(ErrorCode::invalid_argument,
                "a semaphore's total must be from 1 to " + std::to_string(kMaxPermits));
  }
  return service_->ask(name, core::Resize{total}).map([](std::uint32_t) {});
}

Result<void> Client::init() {
  auto done = service_->engine().and_then([](auto* engine) { return engine->init(); });
  if (done && capabilities().values) {
    return client::store_id(*service_).map([](const std::string&) {});
  }
  return done;
}

Result<std::string> Client::init_script() {
  return service_->engine().and_then([](auto* engine) { return engine->init_script(); });
}

std::vector<Finding> Client::doctor() {
  auto engine = service_->engine();
  if (!engine) {
    return {{Finding::Level::problem, "client", engine.error().text, ""}};
  }
  return (*engine)->doctor();
}

}  // namespace holdfast
