#include "core/quorum.h"

#include <algorithm>
#include <functional>

namespace holdfast::core {

using Kind = NodeAnswer::Kind;
using std::chrono::microseconds;

namespace {

// How far proposals are ahead of the nodes' clocks. More than what one message takes longer than
// another; much less than the shortest time for which nodes without their data do not count:
// by then their clocks are beyond all tokens.
constexpr Duration kAhead = std::chrono::milliseconds{10};
// Clocks that were set back are believed, little by little; what merely took longer on its way
// is not.
constexpr Duration::rep kFade = 100;
// What a node's clock showed so long before the others were heard tells nothing any more.
constexpr Duration kForget = std::chrono::minutes{2};

}  // namespace

Duration quorum_drift(Duration ttl) noexcept {
  return ttl / kDriftDivisor + kFixedDrift;
}

std::optional<Duration> quorum_validity(Duration ttl, Time sent, Time now) noexcept {
  const Duration validity = ttl - quorum_drift(ttl);
  return now - sent < validity ? std::optional{validity} : std::nullopt;
}

void Quorum::answer(std::size_t node, const NodeAnswer& answer) {
  if (!answers_[node]) {
    answers_[node] = answer;
  }
}

std::size_t Quorum::count(Kind kind) const noexcept {
  return static_cast<std::size_t>(std::count_if(
      answers_.begin(), answers_.end(), [&](auto& each) { return each && each->kind == kind; }));
}

std::size_t Quorum::open() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(answers_.begin(), answers_.end(), [](auto& each) { return !each; }));
}

bool Quorum::said(std::size_t node, Kind kind) const noexcept {
  return answers_[node] && answers_[node]->kind == kind;
}

Quorum::Verdict Quorum::verdict() const noexcept {
  const std::size_t yes = count(Kind::ours);
  if (yes >= majority()) {
    return Verdict::ours;
  }
  if (yes + open() >= majority()) {
    return Verdict::open;
  }
  // It will not be ours. Is that so because of others, or do we not know?
  const std::size_t no = count(Kind::others) + count(Kind::nobodys);
  const std::size_t dumb = count(Kind::silent) + count(Kind::young);
  return dumb > answers_.size() - majority() || no == 0 ? Verdict::unreachable : Verdict::not_ours;
}

bool Quorum::took_proposal() const noexcept {
  const auto took = [](const auto& each) {
    return each && each->kind == Kind::ours && each->took_proposal;
  };
  return static_cast<std::size_t>(std::count_if(answers_.begin(), answers_.end(), took)) >=
         majority();
}

std::uint64_t Quorum::token() const noexcept {
  std::uint64_t largest = 0;
  for (const auto& each : answers_) {
    if (each && each->kind == Kind::ours) {
      largest = std::max(largest, each->token);
    }
  }
  return largest;
}

std::uint64_t Quorum::largest() const noexcept {
  std::uint64_t largest = 0;
  for (const auto& each : answers_) {
    largest = std::max(largest, each ? each->token : 0);
  }
  return largest;
}

Duration Quorum::left() const noexcept {
  std::vector<Duration> all;
  for (const auto& each : answers_) {
    if (each && each->kind == Kind::ours) {
      all.push_back(each->left);
    }
  }
  if (all.size() < majority()) {
    return Duration::zero();
  }
  std::sort(all.begin(), all.end(), std::greater{});
  return all[majority() - 1];
}

std::optional<Duration> Quorum::validity(Duration ttl, Time now) const noexcept {
  return quorum_validity(std::min(ttl, left()), sent_, now);
}

Duration Quorum::look_again() const noexcept {
  Duration soonest = Duration::max();
  for (const auto& each : answers_) {
    if (each && each->kind == Kind::others && each->left > Duration::zero()) {
      soonest = std::min(soonest, each->left);
    }
  }
  return soonest == Duration::max() ? Duration::zero() : soonest;
}

// As late as it can have been, but for a node that was slow.
void Proposals::note(std::size_t node, std::uint64_t micros, Time asked, Time heard) {
  micros = std::min(micros, kMaxToken);
  const Duration took = heard - asked;
  Duration ahead = microseconds{micros} - heard.time_since_epoch() + std::min(took, kAhead);
  if (const auto& before = clocks_[node]) {
    const Duration faded = before->ahead - (heard - before->noted) / kFade;
    // A quick answer leaves no room for an earlier belief that is far from it.
    ahead = std::max(ahead, took <= kAhead ? std::min(faded, ahead + kAhead) : faded);
  }
  clocks_[node] = Clock{ahead, heard};
  for (auto& clock : clocks_) {
    if (clock && heard - clock->noted > kForget) {
      clock.reset();
    }
  }
}

std::uint64_t Proposals::next(Time now, std::uint64_t seen) const {
  std::optional<Duration> furthest;
  std::size_t known = 0;
  for (const auto& clock : clocks_) {
    if (clock) {
      ++known;
      furthest = std::max(furthest.value_or(clock->ahead), clock->ahead);
    }
  }
  if (known < clocks_.size() / 2 + 1) {
    return 0;
  }
  const Duration time = now.time_since_epoch() + *furthest + kAhead;
  const auto shown = std::chrono::ceil<microseconds>(time).count();
  const std::uint64_t proposal =
      std::max(static_cast<std::uint64_t>(std::max<std::int64_t>(shown, 1)), seen + 1);
  return proposal <= kMaxToken - kTokenStride ? proposal : 0;
}

}  // namespace holdfast::core
