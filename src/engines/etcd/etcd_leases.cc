// One lease a distinct ttl for all locks of the process.
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include <algorithm>

#include "engines/etcd/etcd_recipe.h"

namespace holdfast::engines {
namespace {

constexpr std::string_view kGrant = "/etcdserverpb.Lease/LeaseGrant";
constexpr std::string_view kKeepAlive = "/etcdserverpb.Lease/LeaseKeepAlive";
constexpr std::string_view kRange = "/etcdserverpb.KV/Range";
constexpr int kAttempts = 5;

std::int64_t whole_seconds(Duration ttl) {
  return std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(ttl).count(), 1);
}

Error strange_answer() {
  return {ErrorCode::outcome_unknown, "etcd: an answer that makes no sense", std::nullopt};
}

}  // namespace

bool EtcdRecipe::Turn::await_suspend(std::coroutine_handle<> waiter) {
  const std::lock_guard lock{recipe.mutex_};
  const auto [turn, first] = recipe.turns_.try_emplace(seconds);
  if (!first) {
    turn->second.push_back(waiter);
  }
  return !first;
}

void EtcdRecipe::end_turn(std::int64_t seconds) {
  std::vector<std::coroutine_handle<>> next;
  {
    const std::lock_guard lock{mutex_};
    auto& waiting = turns_[seconds];
    if (waiting.empty()) {
      turns_.erase(seconds);
    } else {
      next.push_back(waiting.front());
      waiting.erase(waiting.begin());
    }
  }
  for (const auto& waiter : next) {
    waiter.resume();
  }
}

engine::Task<std::optional<Error>> EtcdRecipe::find_lease(Duration ttl, std::int64_t& lease) {
  const std::int64_t seconds = whole_seconds(ttl);
  const auto usable = [&] {
    const std::lock_guard lock{mutex_};
    const auto known = current_.find(seconds);
    if (known == current_.end()) {
      return false;
    }
    lease = known->second;
    const Duration left = leases_[lease].alive_until - base::BootClock::now();
    return left >= std::chrono::seconds{seconds} * 3 / 4;
  };
  if (usable()) {
    co_return std::nullopt;
  }
  Turn turn{*this, seconds};
  co_await turn;
  std::optional<Error> problem;
  if (!usable()) {
    const base::Time started = base::BootClock::now();
    if (lease != 0) {
      problem = co_await keep_alive(lease);
    }
    bool gone = false;
    {
      const std::lock_guard lock{mutex_};
      gone = !current_.contains(seconds);
    }
    if (gone) {
      problem.reset();
      const EtcdRequest::Reply reply = co_await session_->call(kGrant, encode_grant(seconds));
      const auto answer = reply.ok() ? decode_lease(reply.body) : std::nullopt;
      if (!answer || answer->id == 0) {
        problem = reply.ok() ? strange_answer() : reply.error();
        if (problem->code == ErrorCode::outcome_unknown) {
          problem->code = ErrorCode::unavailable;  // an unused lease runs out by itself
        }
      } else {
        const std::lock_guard lock{mutex_};
        lease = answer->id;
        leases_[lease] = {.seconds = answer->ttl,
                          .alive_until = started + std::chrono::seconds{answer->ttl}};
        current_[seconds] = lease;
      }
    }
  }
  end_turn(seconds);
  co_return problem;
}

bool EtcdRecipe::Company::await_suspend(std::coroutine_handle<> handle) {
  const std::lock_guard lock{recipe.mutex_};
  const auto [others, first] = recipe.keeping_.try_emplace(lease);
  leads = first;
  waiter = handle;
  if (!first) {
    others->second.push_back(this);
  }
  return !first;
}

// However many renewals want it at the same time, it is asked for once. What
// they are told is counted from before that request.
engine::Task<std::optional<Error>> EtcdRecipe::keep_alive(std::int64_t lease) {
  Company company{*this, lease};
  const bool leads = co_await company;
  if (!leads) {
    co_return company.problem;
  }
  const auto problem = co_await keep_alive_for_all(lease);
  std::vector<Company*> others;
  {
    const std::lock_guard lock{mutex_};
    others = std::move(keeping_.extract(lease).mapped());
  }
  for (Company* each : others) {
    each->problem = problem;
    each->waiter.resume();
  }
  co_return problem;
}

// nullopt if it lives, by the server that was just asked; or if it is gone,
// and everything that hung on it is forgotten.
//
// Leaders keep leases alive by themselves (before 3.5), also one that is cut off
// and does not know yet that there is another, who counts from his election. So a
// read by quorum follows: if it comes from the same term, the leader was the leader.
engine::Task<std::optional<Error>> EtcdRecipe::keep_alive_for_all(std::int64_t lease) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const base::Time started = base::BootClock::now();
    const EtcdRequest::Reply reply =
        co_await session_->call(kKeepAlive, encode_lease(lease), EtcdTurn::at_once);
    if (!reply.ok() && reply.status != EtcdStatusCode::not_found) {
      co_return reply.error();
    }
    const auto answer =
        reply.ok() ? decode_lease(reply.body) : std::optional<EtcdLease>{EtcdLease{}};
    if (!answer) {
      co_return strange_answer();
    }
    if (answer->ttl <= 0) {
      lease_gone(lease);
      co_return std::nullopt;
    }
    std::string nothing = encode_range({.key = options_.prefix + "%"});
    const EtcdRequest::Reply read =
        co_await session_->call(kRange, std::move(nothing), EtcdTurn::at_once);
    const auto seen = read.ok() ? decode_range(read.body) : std::nullopt;
    if (!seen) {
      co_return read.ok() ? strange_answer() : read.error();
    }
    if (answer->term == 0 || seen->term == answer->term) {
      const std::lock_guard lock{mutex_};
      const auto known = leases_.find(lease);
      if (known != leases_.end()) {
        known->second.alive_until =
            std::max(known->second.alive_until, started + std::chrono::seconds{answer->ttl});
      }
      co_return std::nullopt;
    }
  }
  co_return Error{ErrorCode::unavailable, "etcd: the leader changes all the time", std::nullopt};
}

engine::Task<std::optional<Error>> EtcdRecipe::freshen(std::int64_t lease, base::Time until) {
  if (alive_until(lease) >= until) {
    co_return std::nullopt;
  }
  co_return co_await keep_alive(lease);
}

base::Time EtcdRecipe::alive_until(std::int64_t lease) {
  const std::lock_guard lock{mutex_};
  const auto known = leases_.find(lease);
  return known == leases_.end() ? base::Time{} : known->second.alive_until;
}

void EtcdRecipe::lease_gone(std::int64_t lease) {
  std::vector<core::RequestId> lost;
  {
    const std::lock_guard lock{mutex_};
    leases_.erase(lease);
    std::erase_if(current_, [&](const auto& each) { return each.second == lease; });
    for (const auto& [id, place] : places_) {
      if (place.lease == lease) {
        lost.push_back(id);
      }
    }
  }
  for (const core::RequestId& id : lost) {
    forget(id);
    bell_.ring({.id = id, .token = 0});
  }
}

// Leases that somebody uses are kept alive, the others run out.
std::vector<std::int64_t> EtcdRecipe::leases_to_keep(base::Time now, base::Time& next) {
  std::vector<std::int64_t> due;
  for (auto& [id, lease] : leases_) {
    const Duration length = std::chrono::seconds{lease.seconds};
    if (lease.users > 0 && lease.alive_until - length * 2 / 3 <= now) {
      due.push_back(id);
      next = std::min<base::Time>(next, now + length / 6);  // until it was answered
    } else if (lease.users > 0) {
      next = std::min<base::Time>(next, lease.alive_until - length * 2 / 3);
    }
  }
  std::erase_if(leases_, [&](const auto& each) {
    const bool over = each.second.users == 0 && each.second.alive_until < now;
    if (over) {
      std::erase_if(current_, [&](const auto& one) { return one.second == each.first; });
    }
    return over;
  });
  return due;
}

engine::Detached EtcdRecipe::keep_in_background(std::int64_t lease) {
  co_await keep_alive(lease);
}

}  // namespace holdfast::engines
