// Leases that change, seen from their callers.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "client/blocked_callers.h"
#include "client/hand_over_code.h"
#include "client/service.h"
#include "client/wish.h"

namespace holdfast::client {
namespace {

Result<void> supported(bool (*has)(const Capabilities&), const char* what,
                       const Capabilities& engine) {
  return has(engine) ? Result<void>{} : tl::unexpected{unsupported(what, engine, has)};
}

bool has_upgrade(const Capabilities& row) {
  return row.upgrade;
}

bool has_transfer(const Capabilities& row) {
  return row.transfer;
}

}  // namespace

Result<void> Service::upgrade(core::ClaimId claim, std::optional<Duration> wait,
                              const std::stop_token& stop) {
  if (wait && *wait < Duration::zero()) {
    return fail(ErrorCode::invalid_argument,
                "wait is negative; use zero for one try, or leave it empty to wait for ever");
  }
  if (auto can = supported(&has_upgrade, "upgrade", capabilities()); !can) {
    return can;
  }
  if (stop.stop_requested()) {
    return fail(ErrorCode::cancelled, "the wait was cancelled before it began");
  }
  const bool queue = wait != Duration::zero();
  const base::Time now = base::BootClock::now();
  const base::Time deadline = !wait || !queue || *wait > kLongestWait ? base::kNever : now + *wait;
  const auto caller = std::make_shared<BlockedAnswer>();
  std::unique_lock lock{mutex_};
  coordinator_.upgrade(claim, queue, caller, now);
  pump(lock, {stop.stop_possible() ? std::min(deadline, now + kStoppablePatience) : deadline},
       Lead::must);
  std::optional<std::stop_callback<std::function<void()>>> watch;
  if (stop.stop_possible()) {
    watch.emplace(stop, [caller] { caller->box.interrupt(); });
  }
  auto result = caller->box.take_until(deadline);
  if (!result) {
    std::unique_lock again{mutex_};
    coordinator_.cancel_upgrade(
        claim, caller->box.interrupted() ? ErrorCode::cancelled : ErrorCode::timed_out,
        base::BootClock::now());
    pump(again, engine::Patience::none, Lead::may);
    result = caller->box.take();
  }
  return result->map([](std::uint32_t) {});
}

Result<void> Service::downgrade(core::ClaimId claim) {
  if (auto can = supported(&has_upgrade, "downgrade", capabilities()); !can) {
    return can;
  }
  const auto caller = std::make_shared<BlockedAnswer>();
  std::unique_lock lock{mutex_};
  coordinator_.downgrade(claim, caller, base::BootClock::now());
  pump(lock, engine::Patience::for_outcomes, Lead::must);
  return caller->box.take().map([](std::uint32_t) {});
}

Result<Coordinator::GivenAway> Service::give_away(core::ClaimId claim) {
  if (auto can = supported(&has_transfer, "give_away", capabilities()); !can) {
    return tl::unexpected{std::move(can.error())};
  }
  std::unique_lock lock{mutex_};
  auto ours = coordinator_.may_give_away(claim, base::BootClock::now());
  if (!ours) {
    pump(lock, engine::Patience::none, Lead::may);  // it may just have been found lost
    return ours;
  }
  lock.unlock();
  if (auto known = engine_->disclose(ours->request); !known) {
    return tl::unexpected{std::move(known.error())};
  }
  lock.lock();
  auto given = coordinator_.give_away(claim, base::BootClock::now());
  pump(lock, engine::Patience::none, Lead::may);
  return given;
}

Result<Lease> Service::adopt(std::string_view text, const AcquireOptions& options) {
  if (auto ours = engine(); !ours) {
    return tl::unexpected{std::move(ours.error())};
  }
  if (auto can = supported(&has_transfer, "adopt", capabilities()); !can) {
    return tl::unexpected{std::move(can.error())};
  }
  auto code = HandOverCode::read(text);
  if (!code) {
    return tl::unexpected{std::move(code.error())};
  }
  AcquireOptions how = options;
  how.mode = code->shape.mode;
  how.permits = code->shape.permits;
  how.of = code->shape.limit;
  how.wait = Duration::zero();
  how.owner.reset();
  auto wish = make_wish(code->name, how, capabilities());
  if (!wish) {
    return tl::unexpected{std::move(wish.error())};
  }
  wish->adopts = code->request;
  return acquire(*wish, base::kNever, options.stop);
}

Result<void> LeaseHandle::upgrade(std::optional<Duration> wait, const std::stop_token& stop) {
  return service_->upgrade(state_->claim, wait, stop);
}

Result<void> LeaseHandle::downgrade() {
  return service_->downgrade(state_->claim);
}

Result<std::string> LeaseHandle::give_away() {
  auto given = service_->give_away(state_->claim);
  if (!given) {
    return tl::unexpected{std::move(given.error())};
  }
  released_ = true;
  return HandOverCode{state_->name, given->request, given->shape}.text();
}

}  // namespace holdfast::client

namespace holdfast {
namespace {

tl::unexpected<Error> holds_nothing() {
  return fail(ErrorCode::invalid_argument,
              "this lease holds nothing: it is empty, released or moved from");
}

}  // namespace

Result<void> Lease::upgrade(std::optional<Duration> wait, const std::stop_token& stop) {
  if (!*this || !handle_->is_ours()) {
    return holds_nothing();
  }
  return handle_->upgrade(wait, stop);
}

Result<void> Lease::downgrade() {
  if (!*this || !handle_->is_ours()) {
    return holds_nothing();
  }
  return handle_->downgrade();
}

Result<std::string> Lease::give_away() {
  if (!*this || !handle_->is_ours()) {
    return holds_nothing();
  }
  return handle_->give_away();
}

Result<Lease> Client::adopt(std::string_view code, const AcquireOptions& options) {
  return service_->adopt(code, options);
}

}  // namespace holdfast
