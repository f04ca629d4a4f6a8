#include "core/lock_record.h"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::core {
namespace {

Outcome failed(ErrorCode code, std::string text) {
  return {.status = Status::failed, .error = Error{code, std::move(text), std::nullopt}};
}

// Tokens never wrap.
Outcome out_of_tokens() {
  return failed(ErrorCode::unavailable, "this name has used up its tokens; use another name");
}

Outcome held(Status status, const Holder& holder, Time now) {
  return {.status = status, .token = holder.token, .lease_for = holder.expires - now};
}

std::optional<Outcome> wrong_in(const Acquire& acquire) {
  const Shape& shape = acquire.shape;
  if (shape.mode == Mode::permits) {
    if (shape.limit == 0 || shape.limit > kMaxPermits) {
      return failed(ErrorCode::invalid_argument,
                    "a semaphore's total is 1 to " + std::to_string(kMaxPermits));
    }
    if (shape.permits == 0 || shape.permits > shape.limit) {
      return failed(ErrorCode::invalid_argument,
                    "permits must be 1 to the semaphore's total of " + std::to_string(shape.limit));
    }
  } else if (shape.limit != 0 || shape.permits != 1) {
    return failed(ErrorCode::invalid_argument, "only a semaphore has permits and a total");
  }
  const auto sane = [](Duration value) { return value > Duration::zero() && value <= kMaxTtl; };
  if (!sane(acquire.ttl) || !sane(acquire.window)) {
    return failed(ErrorCode::invalid_argument,
                  "ttl and window must be more than nothing and at most a week");
  }
  return std::nullopt;
}

std::optional<Outcome> wrong_in(const Requeue& requeue) {
  if (requeue.id == requeue.next.id) {
    return failed(ErrorCode::invalid_argument, "a request that lines up again needs a new id");
  }
  return wrong_in(requeue.next);
}

std::optional<Outcome> wrong_in(const Transfer& transfer) {
  if (transfer.id == transfer.next.id) {
    return failed(ErrorCode::invalid_argument, "a grant that is handed over needs a new id");
  }
  return wrong_in(transfer.next);
}

std::optional<Outcome> wrong_in(const Resize& resize) {
  if (resize.limit == 0 || resize.limit > kMaxPermits) {
    return failed(ErrorCode::invalid_argument,
                  "a semaphore's total is 1 to " + std::to_string(kMaxPermits));
  }
  return std::nullopt;
}

// Whose outcome the operation is: it is told by that, not by a wake.
bool concerns(const Operation& operation, const RequestId& id) {
  return std::visit(
      [&](const auto& op) {
        if constexpr (requires(Transfer & made) { made = op; }) {
          return op.next.id == id;  // the other may keep what it has
        } else if constexpr (requires { op.next; }) {
          return op.id == id || op.next.id == id;
        } else if constexpr (requires { op.id; }) {
          return op.id == id;
        } else {
          return false;
        }
      },
      operation);
}

}  // namespace

std::optional<Outcome> objection(const Operation& operation) {
  return std::visit(
      [](const auto& op) -> std::optional<Outcome> {
        if constexpr (requires { wrong_in(op); }) {
          return wrong_in(op);
        } else {
          return std::nullopt;
        }
      },
      operation);
}

LockRecord LockRecord::from_parts(Parts parts) {
  LockRecord record;
  record.limit_ = parts.limit;
  record.last_token_ = parts.last_token;
  record.holders_ = std::move(parts.holders);
  record.queue_ = std::move(parts.queue);
  return record;
}

Outcome LockRecord::apply(const Operation& operation, const Context& context,
                          std::vector<Wake>& wakes) {
  settle(context, wakes);
  Outcome outcome = std::visit([&](const auto& op) { return on(op, context, wakes); }, operation);
  if (idle()) {
    limit_ = 0;
  }
  std::erase_if(wakes, [&](const Wake& wake) { return concerns(operation, wake.id); });
  return outcome;
}

bool LockRecord::settle(const Context& context, std::vector<Wake>& wakes) {
  const auto expired = [&](const auto& party) { return party.expires <= context.now; };
  const std::size_t dropped = std::erase_if(holders_, expired) + std::erase_if(queue_, expired);
  const bool promoted = promote(context, wakes);
  if (idle()) {
    limit_ = 0;
  }
  return dropped > 0 || promoted;
}

Time LockRecord::next_change() const noexcept {
  Time next = base::kNever;
  for (const Holder& holder : holders_) {
    next = std::min(next, holder.expires);
  }
  for (const Waiter& waiter : queue_) {
    next = std::min(next, waiter.expires);
  }
  return next;
}

Time LockRecord::idle_from() const noexcept {
  Time last{};
  for (const Holder& holder : holders_) {
    last = std::max(last, holder.expires);
  }
  for (const Waiter& waiter : queue_) {
    last = std::max(last, waiter.expires);
  }
  return last;
}

// Grants in order and stops at the first that does not fit: a waiter that
// wants much is not overtaken for ever by those that want little.
bool LockRecord::promote(const Context& context, std::vector<Wake>& wakes) {
  bool any = finish_upgrade(context, wakes);
  while (!queue_.empty() && fits(queue_.front().shape)) {
    const auto token = take_token(context);
    if (!token) {
      break;
    }
    const Waiter next = std::move(queue_.front());
    queue_.pop_front();
    holders_.push_back({.id = next.id,
                        .session = next.session,
                        .shape = next.shape,
                        .token = *token,
                        .ttl = next.ttl,
                        .since = context.now,
                        .expires = context.now + std::min(next.ttl, next.window)});
    wakes.push_back({.session = next.session, .id = next.id, .token = *token});
    any = true;
  }
  return any;
}

// The last reader, if it waits to be the writer. Its lease stays as it is.
bool LockRecord::finish_upgrade(const Context& context, std::vector<Wake>& wakes) {
  if (holders_.size() != 1 || !holders_.front().upgrading) {
    return false;
  }
  const auto token = take_token(context);
  if (!token) {
    return false;
  }
  Holder& holder = holders_.front();
  holder.shape.mode = Mode::exclusive;
  holder.token = *token;
  holder.upgrading = false;
  wakes.push_back({.session = holder.session, .id = holder.id, .token = *token});
  return true;
}

bool LockRecord::fits(const Shape& shape) const noexcept {
  // Whoever revoked the holders wants the lock to run dry, and a reader that
  // becomes the writer waits for no more readers than there are.
  if (std::any_of(holders_.begin(), holders_.end(),
                  [](const Holder& h) { return h.revoked || h.upgrading; })) {
    return false;
  }
  switch (shape.mode) {
    case Mode::exclusive:
      return holders_.empty();
    case Mode::shared:
      return holders_.empty() || holders_.front().shape.mode == Mode::shared;
    case Mode::permits: {
      std::uint64_t out = shape.permits;
      for (const Holder& holder : holders_) {
        out += holder.shape.permits;
      }
      return out <= limit_;
    }
  }
  return false;
}

std::optional<std::uint64_t> LockRecord::take_token(const Context& context) noexcept {
  const std::uint64_t token = std::max({last_token_ + 1, context.token_floor, std::uint64_t{1}});
  if (token > kMaxToken - (kTokenStride - 1)) {
    return std::nullopt;
  }
  last_token_ = token + kTokenStride - 1;
  return token;
}

bool LockRecord::remove(const RequestId& id) {
  const auto same = [&](const auto& party) { return party.id == id; };
  return std::erase_if(holders_, same) + std::erase_if(queue_, same) > 0;
}

Holder* LockRecord::find_holder(const RequestId& id) noexcept {
  const auto found = std::find_if(holders_.begin(), holders_.end(),
                                  [&](const Holder& holder) { return holder.id == id; });
  return found == holders_.end() ? nullptr : &*found;
}

Waiter* LockRecord::find_waiter(const RequestId& id) noexcept {
  const auto found = std::find_if(queue_.begin(), queue_.end(),
                                  [&](const Waiter& waiter) { return waiter.id == id; });
  return found == queue_.end() ? nullptr : &*found;
}

Outcome LockRecord::queued(const Waiter& waiter, const Context& context) const noexcept {
  Time next = base::kNever;
  for (const Holder& holder : holders_) {
    next = std::min(next, holder.expires);
  }
  std::uint32_t ahead = 0;
  for (const Waiter& other : queue_) {
    if (other.id == waiter.id) {
      break;
    }
    next = std::min(next, other.expires);
    ++ahead;
  }
  return {.status = Status::queued, .look_again = next - context.now, .ahead = ahead};
}

Outcome LockRecord::on(const Acquire& acquire, const Context& context, std::vector<Wake>&) {
  if (const Holder* holder = find_holder(acquire.id)) {
    return held(holder->revoked ? Status::revoked : Status::granted, *holder, context.now);
  }
  if (Waiter* waiter = find_waiter(acquire.id)) {
    waiter->expires = context.now + waiter->window;
    return queued(*waiter, context);
  }
  if (auto wrong = wrong_in(acquire)) {
    return *std::move(wrong);
  }
  if (idle()) {
    limit_ = acquire.shape.limit;
  } else if (limit_ != acquire.shape.limit) {
    return {.status = Status::refused, .count = limit_};
  }
  if ((queue_.empty() || acquire.barge) && fits(acquire.shape)) {
    const auto token = take_token(context);
    if (!token) {
      return out_of_tokens();
    }
    holders_.push_back({.id = acquire.id,
                        .session = acquire.session,
                        .shape = acquire.shape,
                        .token = *token,
                        .ttl = acquire.ttl,
                        .since = context.now,
                        .expires = context.now + acquire.ttl});
    return held(Status::granted, holders_.back(), context.now);
  }
  if (!acquire.queue) {
    return {.status = Status::busy};
  }
  queue_.push_back({.id = acquire.id,
                    .session = acquire.session,
                    .shape = acquire.shape,
                    .ttl = acquire.ttl,
                    .window = acquire.window,
                    .since = context.now,
                    .expires = context.now + acquire.window});
  return queued(queue_.back(), context);
}

Outcome LockRecord::on(const Renew& renew, const Context& context, std::vector<Wake>&) {
  Holder* holder = find_holder(renew.id);
  if (holder == nullptr) {
    return {.status = Status::not_held};
  }
  if (holder->revoked) {
    return held(Status::revoked, *holder, context.now);
  }
  holder->expires = context.now + holder->ttl;
  return held(Status::renewed, *holder, context.now);
}

Outcome LockRecord::on(const Poll& poll, const Context& context, std::vector<Wake>&) {
  if (const Holder* holder = find_holder(poll.id)) {
    return held(holder->revoked ? Status::revoked : Status::granted, *holder, context.now);
  }
  Waiter* waiter = find_waiter(poll.id);
  if (waiter == nullptr) {
    return {.status = Status::not_held};
  }
  if (poll.heartbeat) {
    waiter->expires = context.now + waiter->window;
  }
  return queued(*waiter, context);
}

Outcome LockRecord::on(const Release& release, const Context& context, std::vector<Wake>& wakes) {
  if (!remove(release.id)) {
    return {.status = Status::not_held};
  }
  promote(context, wakes);
  return {.status = Status::released};
}

Outcome LockRecord::on(const Requeue& requeue, const Context& context, std::vector<Wake>& wakes) {
  if (auto wrong = wrong_in(requeue)) {
    return *std::move(wrong);
  }
  const bool gave_back = remove(requeue.id);
  if (gave_back) {
    promote(context, wakes);
  }
  Outcome outcome = on(requeue.next, context, wakes);
  outcome.gave_back = gave_back;
  return outcome;
}

Outcome LockRecord::on(const Revoke& revoke, const Context& context, std::vector<Wake>& wakes) {
  const auto count = static_cast<std::uint32_t>(holders_.size());
  for (Holder& holder : holders_) {
    holder.revoked = true;
    holder.upgrading = false;
    // Settling may have granted it a moment ago: that news is stale.
    std::erase_if(wakes, [&](const Wake& wake) { return wake.id == holder.id; });
    wakes.push_back({.session = holder.session, .id = holder.id, .token = 0});
  }
  if (revoke.now) {
    holders_.clear();
    promote(context, wakes);
  }
  return {.status = Status::done, .count = count};
}

Outcome LockRecord::on(const Resize& resize, const Context& context, std::vector<Wake>& wakes) {
  if (auto wrong = wrong_in(resize)) {
    return *std::move(wrong);
  }
  if (idle()) {
    return {.status = Status::not_held};
  }
  if (limit_ == 0) {
    return {.status = Status::refused, .count = 0};
  }
  limit_ = resize.limit;
  // Who wants more than there will ever be must hear of it, not wait for ever
  // and block the queue. Its next Acquire is refused and names the new total.
  std::erase_if(queue_, [&](const Waiter& waiter) {
    const bool hopeless = waiter.shape.permits > limit_;
    if (hopeless) {
      wakes.push_back({.session = waiter.session, .id = waiter.id, .token = 0});
    }
    return hopeless;
  });
  for (Holder& holder : holders_) {
    holder.shape.limit = limit_;
  }
  for (Waiter& waiter : queue_) {
    waiter.shape.limit = limit_;
  }
  promote(context, wakes);
  return {.status = Status::done, .count = limit_};
}

Outcome LockRecord::on(const Upgrade& upgrade, const Context& context, std::vector<Wake>& wakes) {
  Holder* holder = find_holder(upgrade.id);
  if (holder == nullptr) {
    return {.status = Status::not_held};
  }
  if (holder->revoked) {
    return held(Status::revoked, *holder, context.now);
  }
  if (holder->shape.mode == Mode::permits) {
    return {.status = Status::refused, .count = limit_};
  }
  if (holder->shape.mode == Mode::exclusive) {
    return held(Status::granted, *holder, context.now);
  }
  const bool another = std::any_of(holders_.begin(), holders_.end(), [&](const Holder& other) {
    return other.upgrading && other.id != upgrade.id;
  });
  if (another || (holders_.size() > 1 && !upgrade.queue)) {
    holder->upgrading = false;
    promote(context, wakes);
    return {.status = Status::busy};
  }
  holder->upgrading = true;
  if (holders_.size() == 1) {
    if (!finish_upgrade(context, wakes)) {
      holder->upgrading = false;
      return out_of_tokens();
    }
    holder->expires = context.now + holder->ttl;
    return held(Status::granted, *holder, context.now);
  }
  Time next = base::kNever;
  for (const Holder& other : holders_) {
    if (other.id != upgrade.id) {
      next = std::min(next, other.expires);
    }
  }
  return {.status = Status::queued, .look_again = next - context.now};
}

Outcome LockRecord::on(const Downgrade& downgrade, const Context& context,
                       std::vector<Wake>& wakes) {
  Holder* holder = find_holder(downgrade.id);
  if (holder == nullptr) {
    return {.status = Status::not_held};
  }
  if (holder->revoked) {
    return held(Status::revoked, *holder, context.now);
  }
  if (holder->shape.mode == Mode::permits) {
    return {.status = Status::refused, .count = limit_};
  }
  holder->shape.mode = Mode::shared;
  holder->upgrading = false;
  Outcome outcome = held(Status::granted, *holder, context.now);
  promote(context, wakes);
  return outcome;
}

Outcome LockRecord::on(const Transfer& transfer, const Context& context, std::vector<Wake>& wakes) {
  if (auto wrong = wrong_in(transfer)) {
    return *std::move(wrong);
  }
  if (const Holder* holder = find_holder(transfer.next.id)) {
    return held(holder->revoked ? Status::revoked : Status::granted, *holder, context.now);
  }
  if (find_waiter(transfer.next.id) != nullptr) {
    return {.status = Status::busy};
  }
  Holder* holder = find_holder(transfer.id);
  if (holder == nullptr || holder->revoked) {
    return {.status = Status::not_held};
  }
  const auto token = take_token(context);
  if (!token) {
    return out_of_tokens();
  }
  // Settling may have granted it a moment ago: that news is stale.
  std::erase_if(wakes, [&](const Wake& wake) { return wake.id == transfer.id; });
  *holder = {.id = transfer.next.id,
             .session = transfer.next.session,
             .shape = holder->shape,
             .token = *token,
             .ttl = transfer.next.ttl,
             .since = context.now,
             .expires = context.now + transfer.next.ttl};
  Outcome outcome = held(Status::granted, *holder, context.now);
  promote(context, wakes);  // it may have been upgrading
  return outcome;
}

}  // namespace holdfast::core
