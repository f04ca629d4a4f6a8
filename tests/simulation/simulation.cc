#include "simulation/simulation.h"

#include <memory>
#include <vector>

#include "simulation/fake_store.h"
#include "simulation/ledger.h"
#include "simulation/network.h"
#include "simulation/process.h"
#include "simulation/user.h"
#include "simulation/witness.h"
#include "simulation/words.h"

namespace holdfast::sim {
namespace {

// No honest run comes near.
constexpr std::uint64_t kMostSteps = 400'000;

// What is asked by an administrator is answered, once.
class OneAnswer : public client::AnswerReceiver {
 public:
  explicit OneAnswer(Process& process) : process_{process}, life_{process.shared_life()} {}
  ~OneAnswer() override {
    if (answers_ != 1 && life_->alive) {
      process_.stage().violate("errors", "a question was not answered once");
    }
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;
  void answer(Result<std::uint32_t> /*result*/) override { ++answers_; }

 private:
  Process& process_;
  std::shared_ptr<Life> life_;
  int answers_ = 0;
};

class World {
 public:
  World(const Scenario& scenario, Mutant mutant, std::ostream* trace)
      : stage_{scenario, mutant},
        ledger_{stage_},
        store_{stage_, ledger_},
        network_{stage_, store_},
        witness_{stage_, ledger_} {
    stage_.trace = trace;
    for (const NamedLock& lock : scenario.locks) {
      stage_.limits[lock.name] = lock.limit;
    }
    for (int i = 0; i < scenario.processes; ++i) {
      processes_.push_back(std::make_unique<Process>(i + 1, stage_, network_, store_, witness_));
    }
  }

  Report run() {
    for (const auto& process : processes_) {
      process->start();
    }
    plan_faults();
    plan_acts();
    play();
    finish();
    return {stage_.verdict, stage_.timeline.steps(), 0};
  }

 private:
  Time some_time() {
    return kStart + stage_.fault_dice.between(Duration{}, stage_.scenario.length);
  }
  Process& some_process() { return *processes_[stage_.fault_dice.below(processes_.size())]; }
  const NamedLock& some_lock() {
    return stage_.scenario.locks[stage_.fault_dice.below(stage_.scenario.locks.size())];
  }
  template <typename Act>
  void plan(int times, Act act) {
    for (int i = 0; i < times; ++i) {
      stage_.timeline.at(some_time(), act);
    }
  }

  void plan_faults() {
    const Scenario& scenario = stage_.scenario;
    Random& dice = stage_.fault_dice;
    plan(scenario.crashes, [this] { crash(some_process()); });
    plan(scenario.pauses, [this, &scenario, &dice] {
      some_process().pause(dice.between(Duration{1}, scenario.longest_pause));
    });
    plan(scenario.partitions, [this, &scenario, &dice] {
      network_.cut(some_process(), dice.between(Duration{1}, scenario.longest_partition));
    });
    plan(scenario.outages, [this, &scenario, &dice] {
      store_.go_down(dice.between(Duration{1}, scenario.longest_outage));
    });
  }

  void crash(Process& process) {
    if (!process.life().alive) {
      return;
    }
    process.crash();
    if (stage_.fault_dice.below(4) != 0) {
      stage_.timeline.after(stage_.fault_dice.between(Duration{}, stage_.scenario.ttl),
                            [&process] { process.start(); });
    }
  }

  void plan_acts() {
    plan(stage_.scenario.admin_acts, [this] { act_as_admin(); });
    plan(stage_.scenario.tidies ? 8 : 0, [this] { network_.tidy(); });
    plan(stage_.scenario.strays, [this] {
      const core::RequestId nobody = make_id(0, 0, 1);
      core::Operation what = core::Release{nobody};
      if (stage_.fault_dice.coin()) {
        what = core::Renew{nobody};
      }
      network_.stray({some_lock().name, what});
    });
  }

  void act_as_admin() {
    Process& process = some_process();
    if (!process.life().alive) {
      return;
    }
    const NamedLock& lock = some_lock();
    core::Operation what = core::Revoke{stage_.fault_dice.below(3) == 0};
    if (stage_.fault_dice.below(lock.kind == Kind::semaphore ? 2 : 4) == 0) {
      const auto limit = static_cast<std::uint32_t>(1 + stage_.fault_dice.below(kMostPermits));
      stage_.limits[lock.name] = limit;
      what = core::Resize{limit};
    }
    process.enter(process.life(), [&process, &lock, what] {
      process.coordinator().ask({lock.name, what}, std::make_shared<OneAnswer>(process));
    });
  }

  void play() {
    const Scenario& scenario = stage_.scenario;
    const Time limit = kStart + scenario.length + scenario.ttl * 100 + scenario.patience * 10 +
                       std::chrono::seconds{10};
    Time watched = kStart;
    while (stage_.timeline.step()) {
      if (stage_.now() - watched > witness_.patience_for_free_lock() / 4) {
        watched = stage_.now();
        witness_.watch_liveness();
      }
      if (stage_.now() > limit || stage_.timeline.steps() > kMostSteps) {
        stage_.violate("L4", "there is no end to it");
        break;
      }
    }
  }

  // L4: nothing is left once everybody is done and the longest lease is over.
  void finish() {
    for (const auto& process : processes_) {
      if (!process->is_idle()) {
        stage_.violate("L4", process->life().name() + " is not idle at the end");
      }
    }
    stage_.timeline.skip(stage_.scenario.longest_ttl() * 2);
    network_.tidy();
    stage_.timeline.skip(stage_.scenario.longest_ttl() * 2);
    network_.tidy();
    if (const std::string left = store_.leftovers(); !left.empty()) {
      stage_.violate("L4", "left in the store:" + left);
    }
    witness_.finish();
  }

  Stage stage_;
  Ledger ledger_;
  FakeStore store_;
  Network network_;
  Witness witness_;
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace

Report run(const Scenario& scenario, Mutant mutant, std::ostream* trace) {
  return World{scenario, mutant, trace}.run();
}

}  // namespace holdfast::sim
