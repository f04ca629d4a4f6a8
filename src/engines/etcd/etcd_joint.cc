#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include "engines/etcd/etcd_joint.h"

#include <algorithm>
#include <utility>

namespace holdfast::engines {
namespace {

constexpr std::string_view kTransact = "/etcdserverpb.KV/Txn";
// The server takes 128 operations, and so many less in each of them.
constexpr std::size_t kMostTogether = 64;

// Trivial, and so of no concern to a fork.
thread_local EtcdJoint::Boarding* boarding = nullptr;

Error senseless() {
  return {ErrorCode::outcome_unknown, "etcd: an answer that makes no sense", std::nullopt};
}

// One part an operation, or nobody should look at it.
bool makes_sense(const EtcdTransaction& asked, const EtcdTransactionAnswer& answer) {
  return answer.parts.size() == (answer.succeeded ? asked.success : asked.failure).size();
}

// It answers for all of them that nothing was done.
bool was_refused(EtcdStatusCode status) {
  return status == EtcdStatusCode::not_found || status == EtcdStatusCode::refused ||
         status == EtcdStatusCode::unauthorized;
}

}  // namespace

void EtcdJoint::Passenger::await_suspend(std::coroutine_handle<> handle) {
  waiter = handle;
  if (boarding == nullptr || !boarding->take(*this)) {
    joint.carry_alone(*this);  // and may be gone by now
  }
}

EtcdJoint::Boarding::Boarding(EtcdJoint& joint)
    : joint_{joint}, before_{std::exchange(boarding, this)} {}

EtcdJoint::Boarding::~Boarding() {
  boarding = before_;
  for (std::size_t i = 0; i < passengers_.size(); i += kMostTogether) {
    const auto begin = passengers_.begin() + static_cast<std::ptrdiff_t>(i);
    const std::size_t count = std::min(kMostTogether, passengers_.size() - i);
    joint_.carry({begin, begin + static_cast<std::ptrdiff_t>(count)});
  }
}

// Not two of one lock: keys that are put together have the same revision, and no order.
bool EtcdJoint::Boarding::take(Passenger& passenger) {
  const bool fits = joint_.company_ == Company::yes && &joint_ == &passenger.joint &&
                    std::ranges::none_of(passengers_, [&](const Passenger* each) {
                      return each->dir == passenger.dir;
                    });
  if (fits) {
    passengers_.push_back(&passenger);
  }
  return fits;
}

engine::Detached EtcdJoint::carry_alone(Passenger& one) {
  const EtcdRequest::Reply reply = co_await session_.call(kTransact, encode(one.transaction));
  auto answer = reply.ok() ? decode_transaction(reply.body) : std::nullopt;
  if (answer && makes_sense(one.transaction, *answer)) {
    one.answer = *std::move(answer);
  } else {
    one.problem = reply.ok() ? senseless() : reply.error();
  }
  one.waiter.resume();
}

engine::Detached EtcdJoint::carry(std::vector<Passenger*> all) {
  if (all.size() == 1) {
    carry_alone(*all.front());
    co_return;
  }
  std::vector<const EtcdTransaction*> transactions;
  for (const Passenger* each : all) {
    transactions.push_back(&each->transaction);
  }
  const EtcdRequest::Reply reply = co_await session_.call(kTransact, encode_together(transactions));
  if (was_refused(reply.status)) {
    for (Passenger* each : all) {
      carry_alone(*each);  // one of them was the reason, and shall hear it
    }
    co_return;
  }
  auto answers = reply.ok() ? decode_together(reply.body) : std::nullopt;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!reply.ok()) {
      all[i]->problem = reply.error();
    } else if (answers && answers->size() == all.size() &&
               makes_sense(*transactions[i], (*answers)[i])) {
      all[i]->answer = std::move((*answers)[i]);
    } else {
      all[i]->problem = senseless();
    }
  }
  const Boarding next{*this};  // what follows from the answers goes together as well
  for (const Passenger* each : all) {
    each->waiter.resume();
  }
}

}  // namespace holdfast::engines
