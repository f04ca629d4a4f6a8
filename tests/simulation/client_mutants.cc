#include "simulation/client_mutants.h"

#include <variant>

namespace holdfast::sim {

using core::Status;

void twist(Mutant mutant, client::Wish& wish) {
  core::Terms& terms = wish.terms;
  switch (mutant) {
    case Mutant::hand_over_unbounded:
      terms.hand_over = terms.hand_over == 0 ? 0 : kMaxHandOver;
      break;
    case Mutant::renews_unasked:
      terms.renew = true;
      break;
    case Mutant::max_hold_ignored:
      wish.max_hold.reset();
      break;
    case Mutant::grace_ignored:
      terms.grace = {};
      break;
    case Mutant::writer_as_reader:
      terms.shape.mode = terms.shape.mode == Mode::exclusive ? Mode::shared : terms.shape.mode;
      break;
    case Mutant::permits_too_few:
      terms.shape.permits = 1;
      break;
    default:
      break;
  }
}

void Interpreter::to_store(std::vector<core::Command>& commands) {
  for (core::Command& command : commands) {
    auto* acquire = std::get_if<core::Acquire>(&command.operation);
    auto* release = std::get_if<core::Release>(&command.operation);
    auto* poll = std::get_if<core::Poll>(&command.operation);
    if (mutant_ == Mutant::no_heartbeats && poll != nullptr) {
      poll->heartbeat = false;
    }
    if (mutant_ == Mutant::no_release && release != nullptr) {
      release->id.bytes.back() ^= 1U;
    }
    if (mutant_ == Mutant::retried_as_new && acquire != nullptr &&
        !seen_.insert(acquire->id).second) {
      acquire->id.bytes.back() = static_cast<std::uint8_t>(seen_.size() | 1U);
    }
  }
}

void Interpreter::to_client(std::span<const core::Command> commands, base::Duration elapsed,
                            engine::Outcomes& outcomes) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    core::Outcome& outcome = outcomes[i];
    const auto* renew = std::get_if<core::Renew>(&commands[i].operation);
    const bool release = std::holds_alternative<core::Release>(commands[i].operation);
    switch (mutant_) {
      case Mutant::validity_from_reply:
        outcome.lease_for += elapsed;
        break;
      case Mutant::drift_ignored:
        outcome.lease_for += outcome.lease_for > base::Duration{}
                                 ? outcome.lease_for / (kDriftDivisor - 1) + kFixedDrift * 2
                                 : base::Duration{};
        break;
      case Mutant::unknown_as_unavailable:
        if (outcome.status == Status::failed) {
          outcome.error->code = ErrorCode::unavailable;
        }
        break;
      case Mutant::partial_as_whole:
        if (release && outcome.status == Status::failed) {
          outcome = {.status = Status::released};
        }
        break;
      case Mutant::no_release:
        outcome.status =
            release && outcome.status == Status::not_held ? Status::released : outcome.status;
        break;
      case Mutant::renewing_ends:
        if (renew != nullptr && outcome.status == Status::failed) {
          failed_.insert(renew->id);
        }
        if (renew != nullptr && failed_.contains(renew->id)) {
          outcome = {.status = Status::failed,
                     .error = Error{ErrorCode::unavailable, "renewing has ended", std::nullopt}};
        }
        break;
      default:
        break;
    }
  }
}

}  // namespace holdfast::sim
