#include "engines/redis/redis_holds.h"

#include <variant>

namespace holdfast::engines {
namespace {

// The request whose outcome it is; none for what concerns no request.
const core::RequestId* subject(const core::Operation& operation) {
  return std::visit(
      [](const auto& op) -> const core::RequestId* {
        if constexpr (requires { op.next; }) {
          return &op.next.id;
        } else if constexpr (requires { op.id; }) {
          return &op.id;
        } else {
          return nullptr;
        }
      },
      operation);
}

}  // namespace

void RedisHolds::note(const core::Command& command, const core::Outcome& outcome) {
  const core::RequestId* id = subject(command.operation);
  if (id == nullptr || outcome.status == core::Status::failed) {
    return;
  }
  const std::lock_guard lock{mutex_};
  if (const auto* requeue = std::get_if<core::Requeue>(&command.operation)) {
    held_.erase(requeue->id);
  } else if (const auto* transfer = std::get_if<core::Transfer>(&command.operation)) {
    held_.erase(transfer->id);
  }
  const bool stays = std::holds_alternative<core::Upgrade>(command.operation) ||
                     std::holds_alternative<core::Downgrade>(command.operation);
  if (stays && outcome.status != core::Status::not_held) {
    return;  // it holds what it held, in whatever mode
  }
  if (outcome.status == core::Status::granted || outcome.status == core::Status::renewed) {
    held_.insert(*id);
  } else {
    held_.erase(*id);
  }
}

std::vector<engine::Ring> RedisHolds::rings() const {
  std::vector<engine::Ring> all;
  const std::lock_guard lock{mutex_};
  for (const core::RequestId& id : held_) {
    all.push_back({.id = id, .token = 0});
  }
  return all;
}

}  // namespace holdfast::engines
