// Redlock on a virtual clock: five nodes whose clocks run at different speeds,
// which crash, come back with and without their data, and are cut off; clients
// that take, renew, release and die, and propose tokens by what they know of the
// nodes' clocks. The rules of the nodes are those of redlock_script.h, the
// arithmetic is the real core::Quorum and core::Proposals.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

#include "core/quorum.h"

namespace holdfast::core {
namespace {

using namespace std::chrono_literals;
using Kind = NodeAnswer::Kind;
using Verdict = Quorum::Verdict;

constexpr Duration kTtl = 2s;
constexpr Duration kLongestTtl = 2s;
constexpr Duration kNodeTimeout = 100ms;
constexpr Duration kEnd = 10min;

struct Settings {
  bool guard = true;       // young nodes do not count
  bool lose_data = true;   // some restarts forget everything
  bool write_back = true;  // tokens are written to a majority
  int drift_percent = 0;   // how wrong clocks run, beyond what is allowed for
  bool same_clocks = false;
  bool propose = true;       // tokens, with the request
  bool take_any = false;     // nodes take proposals that are not above their counters
  bool trust_taken = false;  // clients take a majority's votes for its word about the token
  bool trust_old = false;    // clients take votes left over from before for new ones
};

struct Tally {
  int grants = 0;
  int in_one_round = 0;
  int overlaps = 0;
  int falling_tokens = 0;
};

class World {
 public:
  World(std::uint64_t seed, Settings settings) : random_{seed}, settings_{settings} {
    for (Node& node : nodes_) {
      node.speed = speed();
      node.offset =
          Duration{std::chrono::microseconds{below(settings.same_clocks ? 1 : 2'000'000)}};
      node.born = Time{-1h};
    }
    for (int i = 0; i < 4; ++i) {
      clients_.emplace_back().speed = speed();
      later(Duration{std::chrono::milliseconds{below(500)}}, [this, i] { attempt(i); });
    }
    later(1s, [this] { nemesis(); });
  }

  Tally run() {
    while (!events_.empty() && now_ < Time{kEnd}) {
      auto event = events_.top();
      events_.pop();
      now_ = event.at;
      event.work();
    }
    return result_;
  }

 private:
  struct Node {
    double speed = 1;
    Duration offset{};
    bool up = true;
    bool cut_off = false;
    Time born{};
    std::uint64_t owner = 0;
    Time expires{};
    std::uint64_t counter = 0;
  };
  struct Client {
    double speed = 1;
    std::uint64_t request = 0;      // stays the same until it is granted
    Time trusted_until{};           // in true time
    std::array<Time, 5> arrives{};  // the last message, at each node
    std::array<bool, 5> cut_off{};  // from which nodes
    Proposals proposals{5};
    std::uint64_t seen = 0;  // the largest token that nodes spoke of
  };
  struct Event {
    Time at;
    std::uint64_t order;
    std::function<void()> work;
    bool operator<(const Event& other) const {
      return std::tie(other.at, other.order) < std::tie(at, order);
    }
  };
  // One request's way through the nodes.
  struct Round {
    int client = 0;
    std::uint64_t request = 0;
    Time sent{};   // the first question
    Time asked{};  // this one
    std::uint64_t proposal = 0;
    Quorum quorum{5, {}};
    bool over = false;
    std::function<void(Round&)> then;
  };

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }
  double speed() {
    const double allowed = static_cast<double>(below(600) - 300) / 100'000.0;  // 0.3 %
    const double beyond = static_cast<double>(below(201) - 100) / 10'000.0;
    return settings_.same_clocks ? 1.0 : 1.0 + allowed + beyond * settings_.drift_percent;
  }
  void later(Duration after, std::function<void()> work) {
    events_.push({now_ + after, order_++, std::move(work)});
  }
  static Duration scaled(Duration time, double by) {
    return Duration{static_cast<Duration::rep>(static_cast<double>(time.count()) * by)};
  }
  Time time_at(const Node& node) const {
    return Time{scaled(now_.time_since_epoch(), node.speed) + node.offset};
  }
  static std::uint64_t micros(Time time) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
  }
  static Time shown_to(const Client& client, Time time) {
    return Time{scaled(time.time_since_epoch(), client.speed)};
  }
  Duration latency() {
    return std::chrono::microseconds{below(10) == 0 ? below(300'000) : 100 + below(5000)};
  }
  bool is_young(const Node& node) const {
    return settings_.guard && time_at(node) < node.born + kLongestTtl + quorum_drift(kLongestTtl);
  }

  // --- nodes
  NodeAnswer acquire_at(Node& node, std::uint64_t request, std::uint64_t proposal) {
    const Time time = time_at(node);
    if (is_young(node)) return {.kind = Kind::young};
    const std::uint64_t next = std::max(node.counter + 1, micros(time));
    const bool held = node.owner != 0 && node.expires > time;
    if (held && node.owner != request) {
      return {.kind = Kind::others, .token = next, .left = node.expires - time};
    }
    if (held) return {.kind = Kind::ours, .token = next, .left = node.expires - time};
    node.owner = request;
    node.expires = time + kTtl;
    const bool took = proposal != 0 && (proposal >= next || settings_.take_any);
    if (took) node.counter = std::max(node.counter, proposal + kTokenStride - 1);
    return {
        .kind = Kind::ours, .token = took ? proposal : next, .left = kTtl, .took_proposal = took};
  }
  NodeAnswer write_at(Node& node, std::uint64_t request, std::uint64_t token) {
    if (node.owner != request || node.expires <= time_at(node)) return {.kind = Kind::nobodys};
    node.counter = std::max(node.counter, token + kTokenStride - 1);
    return {.kind = Kind::ours, .token = token, .left = node.expires - time_at(node)};
  }
  NodeAnswer renew_at(Node& node, std::uint64_t request) {
    const Time time = time_at(node);
    if (node.owner == 0 || node.expires <= time) {
      if (!is_young(node)) {  // repaired, which does not count yet
        node.owner = request;
        node.expires = time + kTtl;
      }
      return {.kind = Kind::nobodys};
    }
    if (node.owner != request) return {.kind = Kind::others};
    node.expires = time + kTtl;
    return {.kind = Kind::ours, .left = kTtl};
  }
  static void release_at(Node& node, std::uint64_t request) {
    if (node.owner == request) node.owner = 0;
  }

  // --- the way there and back
  // Messages do not overtake each other.
  void send(int client, std::size_t node, std::function<void()> work) {
    Time& last = clients_[static_cast<std::size_t>(client)].arrives[node];
    last = std::max(now_ + latency(), last);
    later(last - now_, std::move(work));
  }
  void ask(int client, std::uint64_t request, const std::function<NodeAnswer(Node&)>& what,
           Time sent, std::function<void(Round&)> then, std::uint64_t proposal = 0) {
    auto round = std::make_shared<Round>();
    round->client = client;
    round->request = request;
    round->sent = sent;
    round->asked = now_;
    round->proposal = proposal;
    round->quorum = Quorum{nodes_.size(), sent};
    round->then = std::move(then);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      send(client, i, [this, round, what, i] {
        Node& node = nodes_[i];
        if (!node.up || is_cut(round->client, i) || below(50) == 0) return;
        const NodeAnswer answer = what(node);
        later(latency(), [this, round, i, answer, clock = micros(time_at(node))] {
          if (is_cut(round->client, i) || below(50) == 0) return;
          hear(*round, i, answer, clock);
        });
      });
    }
    later(kNodeTimeout, [this, round] {
      for (std::size_t i = 0; i < nodes_.size(); ++i) round->quorum.answer(i, {});
      conclude(*round);
    });
  }
  bool is_cut(int client, std::size_t node) const {
    return nodes_[node].cut_off || clients_[static_cast<std::size_t>(client)].cut_off[node];
  }
  void hear(Round& round, std::size_t node, const NodeAnswer& answer, std::uint64_t clock) {
    Client& client = clients_[static_cast<std::size_t>(round.client)];
    client.proposals.note(node, clock, shown_to(client, round.asked), shown_to(client, now_));
    round.quorum.answer(node, answer);
    if (round.quorum.verdict() != Verdict::open) conclude(round);
  }
  static void conclude(Round& round) {
    if (!std::exchange(round.over, true)) round.then(round);
  }
  void release_everywhere(int client, std::uint64_t request) {
    if (below(10) == 0) return;  // nobody hears of it
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      send(client, i, [this, client, i, request] {
        if (nodes_[i].up && !is_cut(client, i)) release_at(nodes_[i], request);
      });
    }
  }

  // --- clients
  void attempt(int index) {
    Client& client = clients_[static_cast<std::size_t>(index)];
    if (client.request == 0) client.request = ++requests_;
    const std::uint64_t request = client.request;
    const std::uint64_t proposal =
        settings_.propose ? client.proposals.next(shown_to(client, now_), client.seen) : 0;
    ask(
        index, request,
        [this, request, proposal](Node& node) { return acquire_at(node, request, proposal); }, now_,
        [this](Round& round) { on_asked(round); }, proposal);
  }
  // Whoever connects asks for the time.
  void introduce(int index) {
    Client& client = clients_[static_cast<std::size_t>(index)];
    const Time now = shown_to(client, now_);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].up && !is_cut(index, i)) {
        client.proposals.note(i, micros(time_at(nodes_[i])), now, now);
      }
    }
  }
  void retry(int index) {
    const std::int64_t longer = below(10) == 0 ? below(2000) : below(100);
    later(std::chrono::milliseconds{50 + longer}, [this, index] { attempt(index); });
  }
  void on_asked(Round& round) {
    const int index = round.client;
    const std::uint64_t request = round.request;
    Client& client = clients_[static_cast<std::size_t>(index)];
    client.seen = std::max(client.seen, round.quorum.largest());
    if (round.quorum.verdict() != Verdict::ours) {
      release_everywhere(index, request);
      retry(index);
      return;
    }
    const Time sent = round.sent;
    if (round.quorum.took_proposal() || (settings_.trust_taken && round.proposal != 0)) {
      ++result_.in_one_round;
      on_written(round, round.proposal);
      return;
    }
    const std::uint64_t token = round.quorum.token();
    if (!settings_.write_back) {
      on_written(round, token);
      return;
    }
    ask(
        index, request,
        [this, request, token](Node& node) { return write_at(node, request, token); }, sent,
        [this, token](Round& written) { on_written(written, token); });
  }
  // What the client's clock shows since then.
  Duration elapsed(const Client& client, Time since) const {
    return scaled(now_ - since, client.speed);
  }
  void on_written(const Round& round, std::uint64_t token) {
    const int index = round.client;
    const std::uint64_t request = round.request;
    const Time sent = round.sent;
    Client& client = clients_[static_cast<std::size_t>(index)];
    const Time now = sent + elapsed(client, sent);
    const auto validity =
        settings_.trust_old ? quorum_validity(kTtl, sent, now) : round.quorum.validity(kTtl, now);
    if (round.quorum.verdict() != Verdict::ours || !validity) {
      release_everywhere(index, request);
      retry(index);
      return;
    }
    client.request = 0;
    ++result_.grants;
    for (const Client& other : clients_) {
      result_.overlaps += &other != &client && other.trusted_until > now_ ? 1 : 0;
    }
    client.seen = 0;
    result_.falling_tokens += token <= last_token_ ? 1 : 0;
    last_token_ = std::max(last_token_, token);
    client.trusted_until = sent + scaled(*validity, 1 / client.speed);
    hold(index, request);
  }
  void hold(int index, std::uint64_t request) {
    Client& client = clients_[static_cast<std::size_t>(index)];
    const std::int64_t fate = below(10);
    if (fate == 0) {  // dies; another comes in its place, later
      later(kTtl * 2, [this, index, &client] {
        client.proposals = Proposals{nodes_.size()};
        introduce(index);
        attempt(index);
      });
    } else if (fate < 5) {
      later(std::chrono::milliseconds{below(600)}, [this, index, request, &client] {
        client.trusted_until = std::min(client.trusted_until, now_);
        release_everywhere(index, request);
        retry(index);
      });
    } else {
      later(kTtl / 3, [this, index, request] {
        ask(
            index, request, [this, request](Node& node) { return renew_at(node, request); }, now_,
            [this](Round& round) { on_renewed(round); });
      });
    }
  }
  void on_renewed(Round& round) {
    Client& client = clients_[static_cast<std::size_t>(round.client)];
    if (client.trusted_until <= now_) {  // a renewal never revives a lease
      release_everywhere(round.client, round.request);
      retry(round.client);
      return;
    }
    if (round.quorum.verdict() == Verdict::ours) {
      const Duration validity = kTtl - quorum_drift(kTtl);
      client.trusted_until =
          std::max(client.trusted_until, round.sent + scaled(validity, 1 / client.speed));
    }
    hold(round.client, round.request);
  }

  void nemesis() {
    Node& node = nodes_[static_cast<std::size_t>(below(5))];
    switch (below(4)) {
      case 0:
        node.cut_off = true;
        later(std::chrono::milliseconds{below(3000)}, [&node] { node.cut_off = false; });
        break;
      case 1: {
        bool& cut = clients_[static_cast<std::size_t>(below(4))]
                        .cut_off[static_cast<std::size_t>(below(5))];
        cut = true;
        later(std::chrono::milliseconds{below(60'000)}, [&cut] { cut = false; });
        break;
      }
      default:
        if (!node.up) break;
        node.up = false;
        later(std::chrono::milliseconds{below(800)}, [this, &node] {
          node.up = true;
          if (settings_.lose_data && below(2) == 0) {
            node.owner = 0;
            node.counter = 0;
            node.born = time_at(node);
          }
        });
    }
    later(std::chrono::milliseconds{200 + below(1500)}, [this] { nemesis(); });
  }

  std::mt19937_64 random_;
  const Settings settings_;
  Time now_{};
  std::uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  std::array<Node, 5> nodes_;
  std::vector<Client> clients_;
  std::uint64_t requests_ = 0;
  std::uint64_t last_token_ = 0;
  Tally result_;
};

Tally sum_over_seeds(Settings settings, int seeds) {
  Tally sum;
  for (int seed = 1; seed <= seeds; ++seed) {
    const Tally one = World{static_cast<std::uint64_t>(seed), settings}.run();
    sum.grants += one.grants;
    sum.in_one_round += one.in_one_round;
    sum.overlaps += one.overlaps;
    sum.falling_tokens += one.falling_tokens;
  }
  return sum;
}

TEST(QuorumSimulation, NobodyOverlapsThroughCrashesRestartsAndPartitions) {
  const Tally result = sum_over_seeds({}, 30);
  EXPECT_GT(result.grants, 3000);
  EXPECT_EQ(result.overlaps, 0);
}

TEST(QuorumSimulation, TokensRiseWhileNoDataIsLost) {
  for (const bool propose : {true, false}) {
    const Tally result = sum_over_seeds({.lose_data = false, .propose = propose}, 30);
    EXPECT_GT(result.grants, 3000);
    EXPECT_EQ(result.overlaps, 0);
    EXPECT_EQ(result.falling_tokens, 0);
    EXPECT_EQ(result.in_one_round > result.grants / 2, propose) << result.in_one_round;
  }
}

// Where clocks agree, the guard is long enough for tokens as well: nodes without their data count
// again when their clocks are beyond everything that was proposed before.
TEST(QuorumSimulation, TokensRiseThroughLossesOfDataAsFarAsClocksAgree) {
  const Tally result = sum_over_seeds({.same_clocks = true}, 30);
  EXPECT_GT(result.grants, 3000);
  EXPECT_GT(result.in_one_round, result.grants / 2);
  EXPECT_EQ(result.falling_tokens, 0);
}

// The simulation can tell: without a rule, what it protects from happens.
TEST(QuorumSimulation, WithoutTheGuardARestartedNodeGrantsTwice) {
  EXPECT_GT(sum_over_seeds({.guard = false}, 30).overlaps, 0);
}

TEST(QuorumSimulation, WithoutTheWriteBackTokensFall) {
  for (const bool propose : {true, false}) {
    const Settings settings{.lose_data = false, .write_back = false, .propose = propose};
    EXPECT_GT(sum_over_seeds(settings, 30).falling_tokens, 0);
  }
}

TEST(QuorumSimulation, IfNodesTakeProposalsThatAreNotAboveTheirCountersTokensFall) {
  EXPECT_GT(sum_over_seeds({.lose_data = false, .take_any = true}, 30).falling_tokens, 0);
}

TEST(QuorumSimulation, IfARefusedProposalCountsAsTakenTokensFall) {
  EXPECT_GT(sum_over_seeds({.lose_data = false, .trust_taken = true}, 30).falling_tokens, 0);
}

TEST(QuorumSimulation, IfVotesThatAreLeftOverCountAsNewOnesHoldersOverlap) {
  EXPECT_GT(sum_over_seeds({.lose_data = false, .trust_old = true}, 30).overlaps, 0);
}

TEST(QuorumSimulation, ClocksThatAreWorseThanTheMarginBreakIt) {
  EXPECT_GT(sum_over_seeds({.drift_percent = 30}, 30).overlaps, 0);
}

}  // namespace
}  // namespace holdfast::core
