#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/boarding.h"
#include "engine/task.h"
#include "engines/zookeeper/zookeeper_session.h"

namespace holdfast::engines {

// What several callers want of different locks at the same moment goes as one
// transaction: that is what costs ZooKeeper something, not what is in it.
// Thread-safe. Requests resume whoever awaits them on the library's thread.
class ZookeeperJoint {
 public:
  explicit ZookeeperJoint(ZookeeperSession& session);

  // A lock's node as it was after a change of ours: if there was one more among its children
  // and that was ours too, the time of the last change is that of our own.
  struct Seen {
    std::int64_t czxid = 0;
    std::int32_t changes = 0;
  };

  struct Wish {
    ZookeeperOperation operation;
    std::string dir = {};  // a create's: what it is in
    Seen seen = {};
    bool alone = false;
    std::coroutine_handle<> waiter = {};
    ZookeeperReply reply = {};
    ZookeeperReply listed = {};  // a create's: what is in `dir` since
  };

  // A node in `dir`: what became of it, and the children of `dir` after that.
  // It has company only if `dir` is known to exist: a transaction fails as a whole.
  class Create {
   public:
    Create(ZookeeperJoint& joint, Wish wish) : joint_{joint}, wish_{std::move(wish)} {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter) { joint_.board(wish_, waiter); }
    std::pair<ZookeeperReply, ZookeeperReply> await_resume() {
      return {std::move(wish_.reply), std::move(wish_.listed)};
    }

   private:
    ZookeeperJoint& joint_;
    Wish wish_;
  };
  enum class Company { yes, no };
  Create create(std::string dir, const std::string& prefix, std::string data, Seen seen,
                Company company);

  class Change {
   public:
    Change(ZookeeperJoint& joint, Wish wish) : joint_{joint}, wish_{std::move(wish)} {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter) { joint_.board(wish_, waiter); }
    ZookeeperReply await_resume() { return std::move(wish_.reply); }

   private:
    ZookeeperJoint& joint_;
    Wish wish_;
  };
  Change remove(std::string path);
  // Decided by a quorum, as every write.
  Change check(std::string path);

  // Those who come while it is open go together.
  using Gate = engine::Boarding<Wish*>::Gate;
  Gate gate() { return Gate{boarding_}; }

 private:
  void board(Wish& wish, std::coroutine_handle<> waiter);
  void depart(std::vector<Wish*> wishes);
  engine::Detached go_alone(Wish& wish);
  engine::Detached go_together(std::vector<Wish*> wishes);

  ZookeeperSession& session_;
  // Gates may be the last to know of it.
  const std::shared_ptr<engine::Boarding<Wish*>> boarding_;
};

}  // namespace holdfast::engines
