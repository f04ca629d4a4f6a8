#include "conformance/conformance.h"

#include <cstdlib>

namespace holdfast::test {

void Conformance::SetUp() {
  if (const auto& missing = GetParam().missing) {
    if (const auto what = missing()) {
      // Under CI a silent skip would hide that an engine is not tested at all.
      if (std::getenv("CI") != nullptr) FAIL() << *what;
      GTEST_SKIP() << *what;
    }
  }
  harness_ = GetParam().make();
  name_ = harness_->fresh_name();
}

Client& Conformance::bystander() {
  if (!bystander_) bystander_ = harness_->open();
  return *bystander_;
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
