#pragma once

#include <coroutine>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/task.h"
#include "engines/etcd/etcd_session.h"
#include "engines/etcd/etcd_wire.h"

namespace holdfast::engines {

// What is asked at the same time about different locks travels as one transaction of
// transactions: for etcd that is one entry in its log instead of many. Each has its own
// compares, so none spoils another. Thread-safe.
class EtcdJoint {
 public:
  // None for those whom the server knows: it would ask for the roles of what travels alone, but
  // before the mends of 2026 (GHSA-rfx7-8w68-q57q) not for what stands in another transaction.
  enum class Company : std::uint8_t { yes, no };
  EtcdJoint(EtcdSession& session, Company company) : session_{session}, company_{company} {}

  // One transaction, sent when it is awaited, alone or with others. `problem` or `answer` is
  // set then; the coroutine goes on on the session's thread, or at once.
  struct Passenger {
    EtcdJoint& joint;
    std::string dir;  // of the lock that it is about
    EtcdTransaction transaction;
    std::optional<Error> problem = std::nullopt;
    EtcdTransactionAnswer answer = {};
    std::coroutine_handle<> waiter = nullptr;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle);
    void await_resume() const noexcept {}
  };

  // Whoever asks on this thread while it lives waits for its end, and goes with the others.
  class Boarding {
   public:
    explicit Boarding(EtcdJoint& joint);
    ~Boarding();
    Boarding(const Boarding&) = delete;
    Boarding& operator=(const Boarding&) = delete;

   private:
    friend struct Passenger;
    bool take(Passenger& passenger);

    EtcdJoint& joint_;
    Boarding* before_;
    std::vector<Passenger*> passengers_;
  };

 private:
  engine::Detached carry(std::vector<Passenger*> all);
  engine::Detached carry_alone(Passenger& one);

  EtcdSession& session_;
  const Company company_;
};

}  // namespace holdfast::engines
