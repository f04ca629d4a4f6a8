#include "conformance/conformance.h"

#include "support/given_time.h"
#include "support/needs.h"

namespace holdfast::test {

void Conformance::SetUp() {
  if (const auto& missing = GetParam().missing) {
    HOLDFAST_SKIP_IF_MISSING(missing());
  }
  harness_ = GetParam().make();
  name_ = harness_->fresh_name();
}

Client& Conformance::bystander() {
  if (!bystander_) bystander_ = harness_->open_observer();
  return *bystander_;
}

void Conformance::given_time(const std::function<void(int)>& body) {
  test::given_time(body, [this] { name_ = harness_->fresh_name(); });
}

LockInfo Conformance::seen() {
  auto info = bystander().show(name_);
  if (!info) throw LockError{info.error()};
  return *info;
}

bool Conformance::await_holders(std::size_t count) {
  return eventually([&] { return seen().holders.size() == count; });
}

bool Conformance::await_waiters(std::size_t count) {
  return eventually([&] { return seen().queue.size() == count; });
}

bool Conformance::await_nothing_left() {
  return eventually([&] {
    auto left = bystander().list(harness_->name_prefix());
    return left && left->empty();
  });
}

}  // namespace holdfast::test
