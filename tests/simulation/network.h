#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "simulation/client_mutants.h"
#include "simulation/fake_store.h"
#include "simulation/stage.h"
#include "simulation/witness.h"

namespace holdfast::sim {

class Process;

// Between the processes and the store: the engines' side of the contract in
// engine.h, over lines that delay, lose and keep back what they carry.
class Network {
 public:
  Network(Stage& stage, FakeStore& store)
      : stage_{stage}, store_{store}, interpreter_{stage.mutant} {}

  void connect(Process& process, const std::shared_ptr<Life>& life);
  // Process::outcomes() is called exactly once for it, if the process lives.
  void send(Process& process, std::size_t lane, std::span<const core::Command> commands);
  // Cuts the way to the store, from it, or both.
  void cut(const Process& process, Duration time);
  // A command from nowhere: nobody waits for its outcome.
  void stray(core::Command command);
  void tidy();

 private:
  // One batch on its way.
  struct Flight {
    Process* process;
    std::shared_ptr<Life> life;
    std::size_t lane;
    std::vector<core::Command> commands;
    Time sent;
    bool finished = false;  // the engine has answered, rightly or not
    bool reply_lost = false;
    std::size_t applied;  // only so many commands of it reach the store
    bool rest_is_known = false;
  };
  using FlightPtr = std::shared_ptr<Flight>;
  struct Line {
    Process* process = nullptr;
    std::shared_ptr<Life> life;
    Time no_requests_until = kStart;
    Time no_replies_until = kStart;
  };

  Duration delay();
  void arrive(const FlightPtr& flight);
  engine::Outcomes apply(Flight& flight);
  void reply(const FlightPtr& flight, engine::Outcomes outcomes, Duration delay);
  void finish(const FlightPtr& flight, const engine::Outcomes& outcomes);
  void fail_after(const FlightPtr& flight, ErrorCode code, Duration delay);
  void ring(const std::vector<core::Wake>& wakes);
  void ring_once(const Line& line, const core::Wake& wake);

  Stage& stage_;
  FakeStore& store_;
  Interpreter interpreter_;
  std::map<core::SessionId, Line> lines_;
};

}  // namespace holdfast::sim
