#include <algorithm>
#include <functional>
#include <utility>

#include "client/several.h"

namespace holdfast {

// Joins the losses of all into one.
class LeaseSet::Watch {
 public:
  explicit Watch(const std::vector<Lease>& leases) {
    for (const Lease& lease : leases) {
      callbacks_.push_back(std::make_unique<Callback>(
          lease.lost(), [source = source_]() mutable { source.request_stop(); }));
    }
  }
  std::stop_token lost() const noexcept { return source_.get_token(); }

 private:
  using Callback = std::stop_callback<std::function<void()>>;
  std::stop_source source_;
  std::vector<std::unique_ptr<Callback>> callbacks_;
};

LeaseSet::LeaseSet() noexcept = default;
LeaseSet::LeaseSet(std::vector<Lease> leases)
    : leases_{std::move(leases)}, watch_{std::make_unique<Watch>(leases_)} {}
LeaseSet::LeaseSet(LeaseSet&&) noexcept = default;

LeaseSet& LeaseSet::operator=(LeaseSet&& other) noexcept {
  if (this != &other) {
    release_in_background();
    watch_ = std::move(other.watch_);
    leases_ = std::move(other.leases_);
  }
  return *this;
}

LeaseSet::~LeaseSet() {
  release_in_background();
}

std::size_t LeaseSet::size() const noexcept {
  return leases_.size();
}

const Lease& LeaseSet::operator[](std::size_t index) const {
  return leases_.at(index);
}

const std::vector<Lease>& LeaseSet::leases() const noexcept {
  return leases_;
}

const Lease* LeaseSet::find(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find_if(leases_, [&](const Lease& lease) { return lease.name() == name; });
  return found == leases_.end() ? nullptr : &*found;
}

bool LeaseSet::is_alive() const noexcept {
  return remaining() > Duration::zero();
}

Duration LeaseSet::remaining() const noexcept {
  Duration least = leases_.empty() ? Duration::zero() : Duration::max();
  for (const Lease& lease : leases_) {
    least = std::min(least, lease.remaining());
  }
  return least;
}

std::stop_token LeaseSet::lost() const noexcept {
  return watch_ == nullptr ? std::stop_token{} : watch_->lost();
}

std::optional<LossReason> LeaseSet::loss() const noexcept {
  for (const Lease& lease : leases_) {
    if (const auto reason = lease.loss()) {
      return reason;
    }
  }
  return std::nullopt;
}

Result<void> LeaseSet::release() {
  if (leases_.empty()) {
    return fail(ErrorCode::invalid_argument, "this set holds nothing: it is empty or moved from");
  }
  return client::Several::release(leases_);
}

void LeaseSet::release_in_background() noexcept {
  client::Several::let_go(leases_);
}

std::vector<Lease> LeaseSet::take() && {
  watch_ = nullptr;
  return std::exchange(leases_, {});
}

namespace client {

std::vector<LeaseHandle*> Several::handles(std::span<Lease> leases) {
  std::vector<LeaseHandle*> handles;
  for (Lease& lease : leases) {
    if (lease.handle_ != nullptr) {
      handles.push_back(lease.handle_.get());
    }
  }
  return handles;
}

Result<void> Several::release(std::span<Lease> leases) {
  Result<void> worst;
  for (Result<void>& result : LeaseHandle::release_each(handles(leases))) {
    const bool worse = !result && (worst || result.error().code == ErrorCode::lease_lost);
    if (worse) {
      worst = std::move(result);
    }
  }
  return worst;
}

void Several::let_go(std::span<Lease> leases) noexcept {
  LeaseHandle::release_each_in_background(handles(leases));
}

}  // namespace client
}  // namespace holdfast
