#include "simulation/network.h"

#include <algorithm>

#include "simulation/process.h"
#include "simulation/words.h"

namespace holdfast::sim {
namespace {

core::Outcome failed(ErrorCode code) {
  return {.status = core::Status::failed, .error = Error{code, "simulated", std::nullopt}};
}

}  // namespace

void Network::connect(Process& process, const std::shared_ptr<Life>& life) {
  lines_[life->session] = {&process, life};
}

void Network::cut(const Process& process, Duration time) {
  Line& line = lines_.at(process.life().session);
  const Time until = stage_.now() + time;
  const int which = stage_.fault_dice.between(0, 2);
  line.life->disturb(until + stage_.scenario.request_timeout * 2);
  line.no_requests_until = which == 1 ? line.no_requests_until : until;
  line.no_replies_until = which == 0 ? line.no_replies_until : until;
  stage_.tell(line.life->name(), [&](auto& out) {
    out << "cut off "
        << (which == 0   ? "to"
            : which == 1 ? "from"
                         : "to and from")
        << " the store for " << words(time);
  });
}

Duration Network::delay() {
  return stage_.network_dice.between(stage_.scenario.delay / 10, stage_.scenario.delay);
}

void Network::send(Process& process, std::size_t lane, std::span<const core::Command> commands) {
  const Scenario& scenario = stage_.scenario;
  Random& dice = stage_.network_dice;
  const Line& line = lines_.at(process.life().session);
  auto flight = std::make_shared<Flight>(Flight{.process = &process,
                                                .life = line.life,
                                                .lane = lane,
                                                .commands = {commands.begin(), commands.end()},
                                                .sent = stage_.now(),
                                                .applied = commands.size()});
  interpreter_.to_store(flight->commands);
  const bool trouble = !stage_.over();
  const auto strikes = [&](int chance) { return trouble && dice.permille(chance); };
  const bool lost = stage_.now() < line.no_requests_until || strikes(scenario.request_lost);
  const bool refused = (lost && dice.below(3) == 0) || strikes(scenario.refused);
  Duration on_the_way = delay();
  if (refused || lost) {
    line.life->disturb(stage_.now() + scenario.request_timeout * 2);
    if (refused) {
      fail_after(flight, ErrorCode::unavailable, delay());
      return;
    }
  } else if (strikes(scenario.ghost)) {
    on_the_way = dice.between(scenario.request_timeout, scenario.longest_ghost);
    line.life->disturb(stage_.now() + on_the_way);
  } else if (strikes(scenario.spike)) {
    on_the_way = dice.between(scenario.delay, scenario.longest_spike);
    line.life->disturb(stage_.now() + on_the_way + scenario.request_timeout);
  }
  if (strikes(scenario.partial)) {
    flight->applied = dice.below(commands.size() + 1);
    flight->rest_is_known = dice.coin();
    line.life->disturb(stage_.now() + scenario.request_timeout * 2);
  }
  flight->reply_lost = strikes(scenario.reply_lost);
  if (!lost) {
    stage_.timeline.after(on_the_way, [this, flight] { arrive(flight); });
  }
  fail_after(flight, ErrorCode::outcome_unknown, scenario.request_timeout);
}

void Network::fail_after(const FlightPtr& flight, ErrorCode code, Duration delay) {
  reply(flight, engine::Outcomes(flight->commands.size(), failed(code)), delay);
}

void Network::arrive(const FlightPtr& flight) {
  if (store_.is_down()) {
    flight->life->disturb(stage_.now() + stage_.scenario.request_timeout * 2);
    if (stage_.network_dice.coin()) {
      fail_after(flight, ErrorCode::unavailable, delay());
    }
    return;
  }
  engine::Outcomes outcomes = apply(*flight);
  const Line& line = lines_.at(flight->life->session);
  if (flight->reply_lost || stage_.now() < line.no_replies_until) {
    flight->life->disturb(stage_.now() + stage_.scenario.request_timeout * 2);
    return;
  }
  Duration back = delay();
  if (!stage_.over() && stage_.network_dice.permille(stage_.scenario.spike)) {
    back = stage_.network_dice.between(back, stage_.scenario.longest_spike);
    flight->life->disturb(stage_.now() + back + stage_.scenario.request_timeout);
  }
  reply(flight, std::move(outcomes), back);
}

engine::Outcomes Network::apply(Flight& flight) {
  std::vector<core::Wake> wakes;
  const std::span<const core::Command> all{flight.commands};
  engine::Outcomes outcomes =
      store_.apply(all.first(flight.applied), flight.finished || !flight.life->alive, wakes);
  // The connection broke in the middle: what came after it may be known to
  // have failed, or not.
  outcomes.resize(all.size(), failed(flight.rest_is_known ? ErrorCode::unavailable
                                                          : ErrorCode::outcome_unknown));
  ring(wakes);
  return outcomes;
}

void Network::reply(const FlightPtr& flight, engine::Outcomes outcomes, Duration delay) {
  stage_.timeline.after(delay, [this, flight, outcomes = std::move(outcomes)]() mutable {
    if (!flight->finished) {
      flight->process->enter(*flight->life, [this, flight, outcomes = std::move(outcomes)] {
        finish(flight, outcomes);
      });
    }
  });
}

void Network::finish(const FlightPtr& flight, const engine::Outcomes& outcomes) {
  if (std::exchange(flight->finished, true)) {
    return;
  }
  engine::Outcomes heard = outcomes;
  interpreter_.to_client(flight->commands, stage_.now() - flight->sent, heard);
  flight->process->outcomes(flight->lane, heard);
}

void Network::ring(const std::vector<core::Wake>& wakes) {
  for (const core::Wake& wake : wakes) {
    const auto known = lines_.find(wake.session);
    if (known == lines_.end() || !known->second.life->alive) {
      continue;
    }
    const int times = stage_.network_dice.permille(stage_.scenario.ring_twice) ? 2 : 1;
    for (int i = 0; i < times; ++i) {
      ring_once(known->second, wake);
    }
  }
}

void Network::ring_once(const Line& line, const core::Wake& wake) {
  const Scenario& scenario = stage_.scenario;
  Random& dice = stage_.network_dice;
  if (dice.permille(scenario.ring_lost) || stage_.now() < line.no_replies_until) {
    return;
  }
  const bool bare = !scenario.pushes_tokens || dice.permille(scenario.ring_without_token);
  const engine::Ring bell{wake.id, bare ? 0 : wake.token};
  const Duration late = dice.permille(scenario.ring_late)
                            ? dice.between(scenario.delay, scenario.latest_ring)
                            : delay();
  Process* process = line.process;
  stage_.timeline.after(late, [process, life = line.life, bell] {
    process->enter(*life, [process, bell] { process->rings(bell); });
  });
}

void Network::stray(core::Command command) {
  if (!store_.is_down()) {
    std::vector<core::Wake> wakes;
    store_.apply({&command, 1}, true, wakes);
    ring(wakes);
  }
}

void Network::tidy() {
  if (!store_.is_down()) {
    std::vector<core::Wake> wakes;
    store_.tidy(wakes);
    ring(wakes);
  }
}

}  // namespace holdfast::sim
