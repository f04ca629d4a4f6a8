#include "torture/nemesis.h"

#include <algorithm>
#include <sstream>
#include <thread>

namespace holdfast::command::torture {

using namespace std::chrono_literals;
using proof::EventKind;
using proof::Fault;
using proof::FaultProxy;
using proof::Swallow;
using proof::Way;

namespace {

constexpr Duration kShortestPause = 20ms;
constexpr Duration kLongestPause = 300ms;
constexpr Duration kAmbush = 50ms;
constexpr std::uint64_t kLongestBurst = 16;

void add(FaultList& list, Fault fault) {
  if (std::ranges::find(list, fault) == list.end()) {
    list.push_back(fault);
  }
}

}  // namespace

bool is_of_the_network(Fault fault) noexcept {
  return fault != Fault::kill && fault != Fault::stop;
}

Result<FaultList> parse_faults(const std::string& text) {
  FaultList list;
  std::istringstream words{text};
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "none") {
      continue;
    }
    const bool network = word == "network" || word == "all";
    const bool process = word == "process" || word == "all";
    if (network || process) {
      for (std::size_t i = 0; i < proof::kFaults; ++i) {
        const auto fault = static_cast<Fault>(i);
        if (is_of_the_network(fault) ? network : process) {
          add(list, fault);
        }
      }
      continue;
    }
    const auto fault = proof::fault_named(word);
    if (!fault) {
      return fail(ErrorCode::invalid_argument,
                  "no fault is called '" + word +
                      "'; there are kill, stop, partition, partition-to, partition-from, delay, "
                      "reset, cut, refuse, swallow, and the groups process, network, all, none");
    }
    add(list, *fault);
  }
  return list;
}

Nemesis::Nemesis(Board& board, Crew& crew, const Line& line, FaultList faults,
                 std::uint64_t grants_a_fault, std::uint64_t seed)
    : board_{board},
      crew_{crew},
      line_{line},
      faults_{std::move(faults)},
      grants_a_fault_{grants_a_fault},
      dice_{seed},
      next_{Clock::now() + kLongestPause} {}

void Nemesis::log(EventKind kind, Fault fault, std::uint32_t process) {
  proof::Event event;
  event.kind = kind;
  event.fault = fault;
  event.process = process;
  event.time = proof::boot_time();
  board_.log.put(board_.log.take(), event);
  struck_ += kind == EventKind::fault ? 1 : 0;
}

Result<void> Nemesis::tick() {
  const auto now = Clock::now();
  resume_due(now);
  if (broken_ && now >= mend_at_) {
    mend_line();
  }
  if (faults_.empty() || now < next_ || is_calm()) {
    return {};
  }
  next_ = now + dice_.between(kShortestPause, kLongestPause);
  return strike();
}

bool Nemesis::is_calm() {
  if (burst_ == 0 && board_.grants < struck_ * grants_a_fault_) {
    return true;
  }
  burst_ = burst_ == 0 ? dice_.below(kLongestBurst) : burst_ - 1;
  return false;
}

Result<void> Nemesis::strike() {
  const Fault fault = faults_.at(dice_.below(faults_.size()));
  if (fault == Fault::kill) {
    return kill();
  }
  if (fault == Fault::stop) {
    stop();
  } else if (!broken_) {
    break_line(fault);
  }
  return {};
}

// Preferably one that holds something now.
std::size_t Nemesis::choose_victim() {
  const std::size_t first = dice_.below(crew_.size());
  if (dice_.percent(30)) {
    return first;
  }
  const auto deadline = Clock::now() + kAmbush;
  while (Clock::now() < deadline) {
    for (std::size_t i = 0; i < crew_.size(); ++i) {
      const std::size_t member = (first + i) % crew_.size();
      if (!crew_.is_stopped(member) && board_.held_by(crew_.process(member)) > 0) {
        return member;
      }
    }
    std::this_thread::yield();
  }
  return first;
}

Result<void> Nemesis::kill() {
  const std::size_t member = choose_victim();
  const std::uint32_t process = crew_.process(member);
  std::erase_if(stopped_, [&](const Stopped& stopped) { return stopped.process == process; });
  if (crew_.is_stopped(member)) {
    log(EventKind::mended, Fault::stop, process);
  }
  log(EventKind::fault, Fault::kill, process);
  crew_.kill(member);
  log(EventKind::killed, Fault::kill, process);
  log(EventKind::mended, Fault::kill, process);
  return crew_.start().map([](std::uint32_t) {});
}

// Longer than a lease lasts, or just long enough to be in the way.
void Nemesis::stop() {
  const std::size_t member = choose_victim();
  if (crew_.is_stopped(member) || crew_.stopped() + 1 >= crew_.size()) {
    return;
  }
  const Duration time =
      dice_.percent(50) ? dice_.between(ttl() * 11 / 10, ttl() * 2) : dice_.between(1ms, ttl() / 2);
  log(EventKind::fault, Fault::stop, crew_.process(member));
  crew_.stop(member);
  stopped_.push_back({crew_.process(member), Clock::now() + time});
}

void Nemesis::resume_due(Clock::time_point now) {
  std::erase_if(stopped_, [&](const Stopped& stopped) {
    if (stopped.until > now) {
      return false;
    }
    crew_.resume(stopped.process);
    log(EventKind::mended, Fault::stop, stopped.process);
    return true;
  });
}

void Nemesis::break_line(Fault fault) {
  log(EventKind::fault, fault, proof::kEverybody);
  const auto& proxies = line_.proxies();
  if (proxies.size() > 1 && dice_.percent(50)) {
    apply(fault, *proxies.at(dice_.below(proxies.size())));
  } else {
    for (const auto& proxy : proxies) {
      apply(fault, *proxy);
    }
  }
  broken_ = fault;
  const bool at_once = fault == Fault::reset;
  mend_at_ = Clock::now() +
             (at_once ? Duration{} : dice_.between(5ms, dice_.percent(30) ? ttl() * 2 : ttl() / 2));
}

void Nemesis::apply(Fault fault, FaultProxy& proxy) {
  const Way way = dice_.percent(50) ? Way::to_store : Way::from_store;
  switch (fault) {
    case Fault::partition_to_store:
      proxy.block(Way::to_store);
      break;
    case Fault::partition_from_store:
      proxy.block(Way::from_store);
      break;
    case Fault::partition:
      proxy.block(Way::to_store);
      proxy.block(Way::from_store);
      break;
    case Fault::delay:
      proxy.delay(way, dice_.between(1ms, 100ms));
      break;
    case Fault::reset:
      proxy.reset_all();
      break;
    case Fault::cut:
      proxy.cut_after(way, dice_.below(400));
      break;
    case Fault::refuse:
      proxy.refuse_connections();
      proxy.reset_all();
      break;
    case Fault::swallow:
      proxy.swallow_reply({.then = dice_.percent(50) ? Swallow::Then::cut : Swallow::Then::silence,
                           .times = 1 + static_cast<std::uint32_t>(dice_.below(3))});
      break;
    case Fault::kill:
    case Fault::stop:
      break;
  }
}

void Nemesis::mend_line() {
  for (const auto& proxy : line_.proxies()) {
    proxy->heal();
  }
  log(EventKind::mended, *broken_, proof::kEverybody);
  broken_.reset();
}

void Nemesis::rest() {
  if (broken_) {
    mend_line();
  }
  resume_due(Clock::time_point::max());
  crew_.resume_all();
}

}  // namespace holdfast::command::torture
