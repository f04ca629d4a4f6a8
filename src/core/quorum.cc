#include "core/quorum.h"

#include <algorithm>
#include <functional>

namespace holdfast::core {

using Kind = NodeAnswer::Kind;

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

std::uint64_t Quorum::token() const noexcept {
  std::uint64_t largest = 0;
  for (const auto& each : answers_) {
    if (each && each->kind == Kind::ours) {
      largest = std::max(largest, each->token);
    }
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

Duration Quorum::look_again() const noexcept {
  Duration soonest = Duration::max();
  for (const auto& each : answers_) {
    if (each && each->kind == Kind::others && each->left > Duration::zero()) {
      soonest = std::min(soonest, each->left);
    }
  }
  return soonest == Duration::max() ? Duration::zero() : soonest;
}

}  // namespace holdfast::core
