#include "proof/history.h"

#include <holdfast/inspect.h>
#include <algorithm>
#include <array>
#include <cstdio>

namespace holdfast::proof {
namespace {

constexpr std::array<std::string_view, 17> kKinds{
    "none",       "called",      "granted",   "refused",  "nested",     "alive",
    "wrote",      "turned away", "releasing", "released", "unreleased", "lost",
    "cancelling", "fault",       "mended",    "killed",   "left over"};

constexpr std::array<std::string_view, kFaults> kFaultNames{
    "kill",  "stop",  "partition-to", "partition-from", "partition",
    "delay", "reset", "cut",          "refuse",         "swallow"};

std::string say_shape(const Event& event) {
  std::string text{to_string(event.mode)};
  if (event.mode == Mode::permits) {
    text += " " + std::to_string(event.permits) + "/" + std::to_string(event.limit);
  }
  return text;
}

std::string say_token(const Event& event) {
  return event.token == 0 ? "" : ", token " + std::to_string(event.token);
}

// What its owner may count on, whatever happens to it.
std::string say_deadline(const Event& event) {
  return "until " + to_text(Moment{event.value});
}

std::string details(const Event& event) {
  switch (event.kind) {
    case EventKind::called:
      return say_shape(event) +
             (event.value < 0 ? ", waits for ever"
                              : ", waits " + std::to_string(event.value / 1'000'000) + " ms");
    case EventKind::granted:
      return say_shape(event) + say_token(event) + ", " + say_deadline(event);
    case EventKind::refused:
    case EventKind::unreleased:
      return std::string{to_string(event.code)};
    case EventKind::alive:
      return say_deadline(event);
    case EventKind::wrote:
    case EventKind::turned_away:
    case EventKind::nested:
      return event.token == 0 ? "" : "token " + std::to_string(event.token);
    case EventKind::fault:
    case EventKind::mended:
      return std::string{to_string(event.fault)};
    default:
      return "";
  }
}

}  // namespace

std::string_view to_string(EventKind kind) noexcept {
  return kKinds.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(Fault fault) noexcept {
  return kFaultNames.at(static_cast<std::size_t>(fault));
}

std::optional<Fault> fault_named(std::string_view name) noexcept {
  const auto found = std::ranges::find(kFaultNames, name);
  if (found == kFaultNames.end()) {
    return std::nullopt;
  }
  return static_cast<Fault>(found - kFaultNames.begin());
}

std::string to_text(Moment time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f ms",
                std::chrono::duration<double, std::milli>{time}.count());
  return text.data();
}

std::string to_text(const Event& event) {
  std::array<char, 64> head{};
  std::snprintf(head.data(), head.size(), "#%-8llu %12.3f ms  ",
                static_cast<unsigned long long>(event.sequence),
                std::chrono::duration<double, std::milli>{event.time}.count());
  std::string text = head.data();
  text += event.process == kEverybody ? "everybody" : "process " + std::to_string(event.process);
  const bool of_a_call = event.kind < EventKind::fault;
  if (of_a_call) {
    text += "." + std::to_string(event.thread) + " call " + std::to_string(event.call) + " lock " +
            std::to_string(event.name);
  }
  text += ": " + std::string{to_string(event.kind)};
  const std::string more = details(event);
  return more.empty() ? text : text + ", " + more;
}

}  // namespace holdfast::proof
