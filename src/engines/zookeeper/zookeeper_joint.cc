#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"  // GCC's own code for coroutines

#include "engines/zookeeper/zookeeper_joint.h"

#include <algorithm>

namespace holdfast::engines {
namespace {

using What = ZookeeperOperation::What;

// A request must fit into the server's buffer of 1 MiB; a node of ours is below one KiB.
constexpr std::size_t kSeats = 64;

bool is_create(const ZookeeperJoint::Wish* wish) {
  return wish->operation.what == What::create;
}

// One of them could not be carried out, so none was.
bool was_refused(const ZookeeperReply& reply) {
  return !reply.ok() && reply.status != ZookeeperStatus::unavailable &&
         reply.status != ZookeeperStatus::outcome_unknown;
}

// When it was, if that can be told from the lists.
std::int64_t time_of(const std::vector<ZookeeperJoint::Wish*>& wishes) {
  for (const ZookeeperJoint::Wish* wish : wishes) {
    if (is_create(wish) && wish->listed.ok() && wish->seen.czxid == wish->listed.czxid &&
        wish->seen.changes + 1 == wish->listed.changes) {
      return wish->listed.pzxid;
    }
  }
  return 0;
}

}  // namespace

ZookeeperJoint::ZookeeperJoint(ZookeeperSession& session)
    : session_{session},
      boarding_{std::make_shared<engine::Boarding<Wish*>>(
          kSeats, [this](std::vector<Wish*> wishes) { depart(std::move(wishes)); })} {}

ZookeeperJoint::Create ZookeeperJoint::create(std::string dir, const std::string& prefix,
                                              std::string data, Seen seen, Company company) {
  Wish wish{.operation = {.what = What::create, .path = dir + "/" + prefix}};
  wish.operation.data = std::move(data);
  wish.dir = std::move(dir);
  wish.seen = seen;
  wish.alone = company == Company::no;
  return {*this, std::move(wish)};
}

ZookeeperJoint::Change ZookeeperJoint::remove(std::string path) {
  return {*this, {.operation = {.what = What::remove, .path = std::move(path)}}};
}

ZookeeperJoint::Change ZookeeperJoint::check(std::string path) {
  return {*this, {.operation = {.what = What::check, .path = std::move(path)}}};
}

// The nodes that one transaction makes have one czxid, so two of one lock would have the same
// token.
void ZookeeperJoint::board(Wish& wish, std::coroutine_handle<> waiter) {
  wish.waiter = waiter;
  if (wish.alone) {
    go_alone(wish);
  } else {
    boarding_->board(&wish, wish.dir);
  }
}

void ZookeeperJoint::depart(std::vector<Wish*> wishes) {
  if (wishes.size() == 1) {
    go_alone(*wishes.front());
  } else {
    go_together(std::move(wishes));
  }
}

engine::Detached ZookeeperJoint::go_alone(Wish& wish) {
  if (is_create(&wish)) {
    ZookeeperPair both{
        session_.create(wish.operation.path, wish.operation.data, wish.operation.mode),
        session_.children(wish.dir)};
    auto [made, listed] = co_await both;
    wish.reply = std::move(made);
    wish.listed = std::move(listed);
  } else if (wish.operation.what == What::remove) {
    wish.reply = co_await session_.remove(wish.operation.path);
  } else {
    std::vector<ZookeeperOperation> one;
    one.push_back(wish.operation);
    wish.reply = co_await session_.multi(std::move(one));
  }
  wish.waiter.resume();
}

engine::Detached ZookeeperJoint::go_together(std::vector<Wish*> wishes) {
  std::vector<ZookeeperOperation> operations;
  for (const Wish* wish : wishes) {
    operations.push_back(wish->operation);
  }
  std::vector<ZookeeperRequest> requests;
  requests.push_back(session_.multi(std::move(operations)));
  for (const Wish* wish : wishes) {
    if (is_create(wish)) {
      requests.push_back(session_.children(wish->dir));
    }
  }
  ZookeeperSeveral in_one_go{std::move(requests)};
  auto replies = co_await in_one_go;
  ZookeeperReply done = std::move(replies.front());
  if (was_refused(done)) {
    std::ranges::for_each(wishes, [this](Wish* wish) { go_alone(*wish); });
    co_return;
  }
  std::size_t creates = 0;
  for (Wish* wish : wishes) {
    wish->reply.status = done.status;
    wish->reply.native = done.native;
    if (is_create(wish)) {
      wish->reply.text = done.ok() ? done.created[creates] : "";
      wish->listed = std::move(replies[++creates]);
    }
  }
  if (done.ok() && creates > 0) {
    std::int64_t czxid = time_of(wishes);
    if (czxid == 0) {
      const ZookeeperReply node = co_await session_.get(done.created.front());
      czxid = node.ok() ? node.czxid : 0;
    }
    for (Wish* wish : wishes) {
      if (is_create(wish)) {
        wish->reply.czxid = czxid;
        // Made, but its token is not known: it is to be looked for.
        if (czxid == 0) {
          wish->reply.status = ZookeeperStatus::outcome_unknown;
        }
      }
    }
  }
  // What they want next they may want together as well.
  const Gate gate{boarding_};
  std::ranges::for_each(wishes, [](Wish* wish) { wish->waiter.resume(); });
}

}  // namespace holdfast::engines
