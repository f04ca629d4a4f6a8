#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "client/coordinator.h"
#include "client/door.h"
#include "client/mailbox.h"

namespace holdfast::client {

// A thread that waits for a lock: in its mailbox, or at the door.
class BlockedCaller : public GrantReceiver {
 public:
  void deliver(Result<std::shared_ptr<LeaseState>> result) override {
    box.put(std::move(result));
    wake();
  }
  void interrupt() {
    box.interrupt();
    wake();
  }

  Mailbox<Result<std::shared_ptr<LeaseState>>> box;
  std::atomic<Door*> sleeps_at{nullptr};  // set before the last look into the box

 private:
  void wake() const {
    if (Door* door = sleeps_at.load(); door != nullptr) {
      door->wake();
    }
  }
};

// A thread that waits for an answer.
class BlockedAnswer : public AnswerReceiver {
 public:
  void answer(Result<std::uint32_t> result) override { box.put(std::move(result)); }
  Mailbox<Result<std::uint32_t>> box;
};

}  // namespace holdfast::client
