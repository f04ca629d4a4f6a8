#include "simulation/words.h"

#include <holdfast/inspect.h>
#include <iomanip>
#include <sstream>

namespace holdfast::sim {
namespace {

std::string say(const core::Acquire& acquire) {
  std::string text =
      "Acquire " + words(acquire.id) + " " + std::string{to_string(acquire.shape.mode)};
  if (acquire.shape.mode == Mode::permits) {
    text += " " + std::to_string(acquire.shape.permits) + "/" + std::to_string(acquire.shape.limit);
  }
  text += acquire.queue ? "" : " try";
  text += acquire.barge ? " barge" : "";
  return text + " ttl " + words(acquire.ttl);
}

std::string say(const core::Renew& renew) {
  return "Renew " + words(renew.id);
}
std::string say(const core::Poll& poll) {
  return (poll.heartbeat ? "Heartbeat " : "Poll ") + words(poll.id);
}
std::string say(const core::Release& release) {
  return "Release " + words(release.id);
}
std::string say(const core::Requeue& requeue) {
  return "Requeue " + words(requeue.id) + " -> " + say(requeue.next);
}
std::string say(const core::Revoke& revoke) {
  return revoke.now ? "Revoke now" : "Revoke";
}
std::string say(const core::Resize& resize) {
  return "Resize " + std::to_string(resize.limit);
}
std::string say(const core::Upgrade& upgrade) {
  return "Upgrade " + words(upgrade.id);
}
std::string say(const core::Downgrade& downgrade) {
  return "Downgrade " + words(downgrade.id);
}
std::string say(const core::Transfer& transfer) {
  return "Transfer " + words(transfer.id) + " -> " + say(transfer.next);
}

const char* name_of(core::Status status) {
  constexpr const char* kNames[] = {"granted", "queued",   "busy",    "renewed", "released",
                                    "done",    "not_held", "revoked", "refused", "failed"};
  return kNames[static_cast<std::size_t>(status)];
}

}  // namespace

base::Id make_id(int process, int incarnation, std::uint32_t number) {
  base::Id id;
  for (unsigned i = 0; i < 4; ++i) {
    id.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  }
  id.bytes[4] = static_cast<std::uint8_t>(process);
  id.bytes[5] = static_cast<std::uint8_t>(incarnation);
  id.bytes[6] = 1;
  return id;
}

std::string words(const base::Id& id) {
  std::uint32_t number = 0;
  for (unsigned i = 0; i < 4; ++i) {
    number |= static_cast<std::uint32_t>(id.bytes[i]) << (8 * i);
  }
  return "p" + std::to_string(id.bytes[4]) + "." + std::to_string(id.bytes[5]) + "#" +
         std::to_string(number);
}

std::string words(base::Duration duration) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(3)
       << std::chrono::duration<double, std::milli>{duration}.count() << "ms";
  return text.str();
}

std::string words(const core::Operation& operation) {
  return std::visit([](const auto& what) { return say(what); }, operation);
}

std::string words(const core::Outcome& outcome) {
  std::string text = name_of(outcome.status);
  switch (outcome.status) {
    case core::Status::granted:
      text += " token " + std::to_string(outcome.token) + " for " + words(outcome.lease_for);
      break;
    case core::Status::renewed:
      text += " for " + words(outcome.lease_for);
      break;
    case core::Status::queued:
      text += " behind " + std::to_string(outcome.ahead);
      break;
    case core::Status::failed:
      text += outcome.error ? " " + std::string{to_string(outcome.error->code)} : "";
      break;
    default:
      break;
  }
  return text;
}

}  // namespace holdfast::sim
