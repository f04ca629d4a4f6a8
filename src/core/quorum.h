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
  std::uint64_t token = 0;  // after an acquire: what the node would hand out, or has taken
  Duration left{};          // ours, others: until the node frees it
  bool took_proposal =
      false;  // ours: the token is the proposed one, and the node's counter is there
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

  // A majority has taken the lock and, in the same step, the proposed token: whoever gets the
  // lock later hears of it from at least one of them.
  bool took_proposal() const noexcept;
  // The largest token among those who say "ours".
  std::uint64_t token() const noexcept;
  // The largest that anybody spoke of: what is not above it will be refused.
  std::uint64_t largest() const noexcept;
  // For how long a majority keeps what is ours, by the least favourable of
  // its best: at least that many nodes keep it so long.
  Duration left() const noexcept;
  // quorum_validity() of an acquire. What a majority keeps is less than `ttl` where votes of
  // an earlier question with the same id were still there.
  std::optional<Duration> validity(Duration ttl, Time now) const noexcept;
  // Until one more node may be had from others, if nobody acts before.
  Duration look_again() const noexcept;

 private:
  std::vector<std::optional<NodeAnswer>> answers_;
  Time sent_;
};

// How long a caller may trust a lease that a majority was asked for at `sent`
// and has confirmed at `now`, counted from `sent`; nullopt if that is over.
std::optional<Duration> quorum_validity(Duration ttl, Time sent, Time now) noexcept;

// The tokens that one client proposes with its requests, so that a majority can take lock and
// token in one round: above what the nodes' clocks will show when they get it, as far as their
// earlier answers tell. Only a guess: a node that finds it too low says so.
class Proposals {
 public:
  explicit Proposals(std::size_t nodes) : clocks_(nodes) {}

  // A node read `micros` from its clock, at some time between these.
  void note(std::size_t node, std::uint64_t micros, Time asked, Time heard);

  // For a request that is sent now; `seen` is the largest token that nodes spoke of before.
  // 0: too few clocks are known, or there are no more tokens.
  std::uint64_t next(Time now, std::uint64_t seen) const;

 private:
  struct Clock {
    Duration ahead{};  // of ours
    Time noted{};
  };
  std::vector<std::optional<Clock>> clocks_;
};

}  // namespace holdfast::core
