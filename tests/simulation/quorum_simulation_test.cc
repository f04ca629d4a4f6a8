// Redlock on a virtual clock: five nodes whose clocks run at different speeds,
// which crash, come back with and without their data, and are cut off; clients
// that take, renew, release and die. The rules of the nodes are those of
// redlock_script.h, the arithmetic is the real core::Quorum.
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
};

struct Tally {
  int grants = 0;
  int overlaps = 0;
  int falling_tokens = 0;
};

class World {
 public:
  World(std::uint64_t seed, Settings settings) : random_{seed}, settings_{settings} {
    for (Node& node : nodes_) {
      node.speed = speed();
      node.offset = Duration{std::chrono::microseconds{below(50'000)}};
      node.born = Time{-1h};
    }
    for (int i = 0; i < 4; ++i) {
      clients_.push_back({.speed = speed()});
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
    std::uint64_t request = 0;
    Time trusted_until{};  // in true time
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
    Time sent{};
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
    return 1.0 + allowed + beyond * settings_.drift_percent;
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
  Duration latency() {
    return std::chrono::microseconds{below(10) == 0 ? below(300'000) : 100 + below(5000)};
  }
  bool is_young(const Node& node) const {
    return settings_.guard && time_at(node) < node.born + kLongestTtl + quorum_drift(kLongestTtl);
  }

  // --- nodes
  NodeAnswer acquire_at(Node& node, std::uint64_t request) {
    const Time time = time_at(node);
    if (is_young(node)) return {Kind::young, 0, {}};
    if (node.owner != 0 && node.expires > time && node.owner != request) {
      return {Kind::others, 0, node.expires - time};
    }
    if (node.owner != request || node.expires <= time) {
      node.owner = request;
      node.expires = time + kTtl;
    }
    const auto micros =
        std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch());
    return {Kind::ours, std::max(node.counter + 1, static_cast<std::uint64_t>(micros.count())),
            node.expires - time};
  }
  NodeAnswer write_at(Node& node, std::uint64_t request, std::uint64_t token) {
    if (node.owner != request || node.expires <= time_at(node)) return {Kind::nobodys, 0, {}};
    node.counter = std::max(node.counter, token + kTokenStride - 1);
    return {Kind::ours, token, {}};
  }
  NodeAnswer renew_at(Node& node, std::uint64_t request) {
    const Time time = time_at(node);
    if (node.owner == 0 || node.expires <= time) {
      if (!is_young(node)) {  // repaired, which does not count yet
        node.owner = request;
        node.expires = time + kTtl;
      }
      return {Kind::nobodys, 0, {}};
    }
    if (node.owner != request) return {Kind::others, 0, {}};
    node.expires = time + kTtl;
    return {Kind::ours, 0, kTtl};
  }
  static void release_at(Node& node, std::uint64_t request) {
    if (node.owner == request) node.owner = 0;
  }

  // --- the way there and back
  void ask(int client, std::uint64_t request, const std::function<NodeAnswer(Node&)>& what,
           Time sent, std::function<void(Round&)> then) {
    auto round = std::make_shared<Round>();
    round->client = client;
    round->request = request;
    round->sent = sent;
    round->quorum = Quorum{nodes_.size(), sent};
    round->then = std::move(then);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      later(latency(), [this, round, what, i] {
        Node& node = nodes_[i];
        if (!node.up || node.cut_off || below(50) == 0) return;
        const NodeAnswer answer = what(node);
        later(latency(), [this, round, i, answer] {
          if (nodes_[i].cut_off || below(50) == 0) return;
          round->quorum.answer(i, answer);
          if (round->quorum.verdict() != Verdict::open) conclude(*round);
        });
      });
    }
    later(kNodeTimeout, [this, round] {
      for (std::size_t i = 0; i < nodes_.size(); ++i) round->quorum.answer(i, {});
      conclude(*round);
    });
  }
  static void conclude(Round& round) {
    if (!std::exchange(round.over, true)) round.then(round);
  }
  void release_everywhere(std::uint64_t request) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      later(latency(), [this, i, request] {
        if (nodes_[i].up && !nodes_[i].cut_off) release_at(nodes_[i], request);
      });
    }
  }

  // --- clients
  void attempt(int index) {
    const std::uint64_t request = ++requests_;
    clients_[static_cast<std::size_t>(index)].request = request;
    ask(
        index, request, [this, request](Node& node) { return acquire_at(node, request); }, now_,
        [this](Round& round) { on_asked(round); });
  }
  void retry(int index) {
    later(std::chrono::milliseconds{50 + below(100)}, [this, index] { attempt(index); });
  }
  void on_asked(Round& round) {
    const int index = round.client;
    const std::uint64_t request = round.request;
    if (round.quorum.verdict() != Verdict::ours) {
      release_everywhere(request);
      retry(index);
      return;
    }
    const std::uint64_t token = round.quorum.token();
    const Time sent = round.sent;
    if (!settings_.write_back) {
      on_written(index, request, token, sent, true);
      return;
    }
    ask(
        index, request,
        [this, request, token](Node& node) { return write_at(node, request, token); }, sent,
        [this, token](Round& written) {
          on_written(written.client, written.request, token, written.sent,
                     written.quorum.verdict() == Verdict::ours);
        });
  }
  // What the client's clock shows since then.
  Duration elapsed(const Client& client, Time since) const {
    return scaled(now_ - since, client.speed);
  }
  void on_written(int index, std::uint64_t request, std::uint64_t token, Time sent, bool good) {
    Client& client = clients_[static_cast<std::size_t>(index)];
    const auto validity = quorum_validity(kTtl, sent, sent + elapsed(client, sent));
    if (!good || !validity) {
      release_everywhere(request);
      retry(index);
      return;
    }
    ++result_.grants;
    for (const Client& other : clients_) {
      result_.overlaps += &other != &client && other.trusted_until > now_ ? 1 : 0;
    }
    result_.falling_tokens += token <= last_token_ ? 1 : 0;
    last_token_ = std::max(last_token_, token);
    client.trusted_until = sent + scaled(*validity, 1 / client.speed);
    hold(index, request);
  }
  void hold(int index, std::uint64_t request) {
    Client& client = clients_[static_cast<std::size_t>(index)];
    const std::int64_t fate = below(10);
    if (fate == 0) {  // dies; another comes in its place, later
      later(kTtl * 2, [this, index] { attempt(index); });
    } else if (fate < 5) {
      later(std::chrono::milliseconds{below(600)}, [this, index, request, &client] {
        client.trusted_until = std::min(client.trusted_until, now_);
        release_everywhere(request);
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
      release_everywhere(round.request);
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
    switch (below(3)) {
      case 0:
        node.cut_off = true;
        later(std::chrono::milliseconds{below(3000)}, [&node] { node.cut_off = false; });
        break;
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
  const Tally result = sum_over_seeds({.lose_data = false}, 30);
  EXPECT_GT(result.grants, 3000);
  EXPECT_EQ(result.overlaps, 0);
  EXPECT_EQ(result.falling_tokens, 0);
}

// The simulation can tell: without a rule, what it protects from happens.
TEST(QuorumSimulation, WithoutTheGuardARestartedNodeGrantsTwice) {
  EXPECT_GT(sum_over_seeds({.guard = false}, 30).overlaps, 0);
}

TEST(QuorumSimulation, WithoutTheWriteBackTokensFall) {
  EXPECT_GT(sum_over_seeds({.lose_data = false, .write_back = false}, 30).falling_tokens, 0);
}

TEST(QuorumSimulation, ClocksThatAreWorseThanTheMarginBreakIt) {
  EXPECT_GT(sum_over_seeds({.drift_percent = 30}, 30).overlaps, 0);
}

}  // namespace
}  // namespace holdfast::core
