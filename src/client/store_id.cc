#include "client/store_id.h"

#include <utility>

#include "base/ids.h"
#include "client/values.h"

namespace holdfast::client {
namespace {

constexpr std::string_view kName = "holdfast:store-id";

}  // namespace

std::optional<std::string> Service::known_store_id() {
  const std::lock_guard lock{mutex_};
  return store_id_.empty() ? std::nullopt : std::optional{store_id_};
}

void Service::remember_store_id(std::string id) {
  const std::lock_guard lock{mutex_};
  store_id_ = std::move(id);
}

Result<std::string> store_id(Service& service) {
  if (auto known = service.known_store_id()) {
    return *std::move(known);
  }
  if (!service.capabilities().values) {
    return fail(ErrorCode::unsupported,
                service.capabilities().engine +
                    " keeps no id of its store, so locks of several stores cannot be ordered; "
                    "sqlite does");
  }
  // Twice: whoever is first to write it, all read the same.
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto found = read_value(service, kName);
    if (!found) {
      return tl::unexpected{std::move(found.error())};
    }
    if (*found) {
      service.remember_store_id(*(*found)->bytes);
      return *(*found)->bytes;
    }
    const std::string id = base::Id::random().hex();
    core::ValueWrite write;
    write.name = kName;
    write.bytes = id;
    if (auto written = write_value(service, write); !written) {
      return tl::unexpected{std::move(written.error())};
    }
  }
  return fail(ErrorCode::unavailable, "the id of the store was erased while it was being made");
}

}  // namespace holdfast::client
