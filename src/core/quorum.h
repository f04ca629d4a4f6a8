#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/commands.h"

// Redlock's arithmetic: what a majority of independent nodes has said about
// one request, and what follows from it. Pure: answers and time are passed in.
namespace holdfast::core {

// What one node said.
struct NodeAnswer {
  enum class Kind : std::uint8_t {
    ours,     // it is ours there now: granted, renewed, written, released
    others,   // somebody else has it there
    nobodys,  // nobody has it there
    young,    // it may have forgotten grants that still run: does not count
    silent,   // no answer: too slow, not reachable, or it refused
  };
  Kind kind = Kind::silent;
  std::uint64_t token = 0;  // ours, after an acquire: what the node would hand out
  Duration left{};          // ours, others: until the node frees it
};

// Nodes' clocks run at different speeds, and so does ours: a lease that they
// keep for `ttl` is trusted this much shorter.
Duration quorum_drift(Duration ttl) noexcept;

// The answers to one question that was put to all nodes at `sent`.
class Quorum {
 public:
  Quorum(std::size_t nodes, Time sent) : answers_(nodes), sent_{sent} {}

  // The first answer of a node counts.
  void answer(std::size_t node, const NodeAnswer& answer);

  std::size_t majority() const noexcept { return answers_.size() / 2 + 1; }
  std::size_t count(NodeAnswer::Kind kind) const noexcept;
  std::size_t open() const noexcept;  // nodes that have not answered
  Time sent() const noexcept { return sent_; }
  bool said(std::size_t node, NodeAnswer::Kind kind) const noexcept;

  enum class Verdict : std::uint8_t {
    open,         // more answers are needed
    ours,         // a majority says so
    not_ours,     // a majority cannot say so any more, because others have it
                  // or it is gone
    unreachable,  // neither can be known: too many do not answer or do not count
  };
  Verdict verdict() const noexcept;

  // The largest token among those who say "ours".
  std::uint64_t token() const noexcept;
  // For how long a majority keeps what is ours, by the least favourable of
  // its best: at least that many nodes keep it so long.
  Duration left() const noexcept;
  // Until one more node may be had from others, if nobody acts before.
  Duration look_again() const noexcept;

 private:
  std::vector<std::optional<NodeAnswer>> answers_;
  Time sent_;
};

// How long a caller may trust a lease that a majority was asked for at `sent`
// and has confirmed at `now`, counted from `sent`; nullopt if that is over.
std::optional<Duration> quorum_validity(Duration ttl, Time sent, Time now) noexcept;

}  // namespace holdfast::core
