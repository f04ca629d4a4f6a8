#include "engines/redlock/redlock_node.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "core/quorum.h"
#include "engines/redlock/redlock_script.h"

namespace holdfast::engines {

std::string_view redlock_text(const RespValue& reply) {
  if (reply.is_error()) {
    return {};
  }
  return reply.items.empty() ? std::string_view{reply.text} : reply.items.front().text;
}

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kRetry = 100ms;
constexpr std::string_view kUptime = "uptime_in_seconds:";
constexpr std::string_view kClock = "server_time_usec:";
// A node that owes so many answers is as good as gone.
constexpr std::size_t kMostOwed = 256;

// A number in what INFO says.
std::uint64_t number_after(std::string_view word, const std::string& info) {
  std::uint64_t number = 0;
  if (const std::size_t at = info.find(word); at != std::string::npos) {
    std::from_chars(info.data() + at + word.size(), info.data() + info.size(), number);
  }
  return number;
}

// As the script's reply begins.
std::uint64_t clock_in(const RespValue& reply) {
  const std::string_view said = redlock_text(reply);
  std::uint64_t seconds = 0;
  std::uint64_t micros = 0;
  const char* const end = said.data() + said.size();
  const auto [dot, wrong] = std::from_chars(said.data(), end, seconds);
  const bool good = wrong == std::errc{} && dot != end && seconds < core::kMaxToken / 1'000'000 &&
                    std::from_chars(dot + 1, end, micros).ec == std::errc{};
  return good && micros < 1'000'000 ? seconds * 1'000'000 + micros : 0;
}

}  // namespace

RedlockNode::RedlockNode(const RedlockOptions& options, std::size_t which,
                         std::shared_ptr<RedisTls> tls)
    : address_{options.nodes[which]},
      guard_{options.first_start ? base::Duration::zero()
                                 : options.max_ttl + core::quorum_drift(options.max_ttl)},
      patience_{options.access.timeout},
      connector_{options.node(which), std::move(tls)} {}

void RedlockNode::lose(std::vector<Answer>& answers, const Error& error) {
  connector_.close();
  introduced_ = false;
  asked_age_.reset();
  trouble_ = error.text;
  next_try_ = base::BootClock::now() + kRetry;
  for (const Question& question : std::exchange(asked_, {})) {
    answers.push_back({.tag = question.tag, .asked = question.at, .reply = std::nullopt});
  }
}

RedlockNode::Stage RedlockNode::stage() const {
  const RedisLink& link = connector_.link();
  const bool clogged = connector_.is_ready() && (connector_.wait().events & POLLOUT) != 0;
  return {link.sockets(), link.state(), introduced_, clogged};
}

bool RedlockNode::is_overdue(base::Time now) const {
  const bool waits = !introduced_ || !asked_.empty();
  const base::Time since = introduced_ && waits ? std::max(asked_.front().at, moved_) : moved_;
  return waits && now - since > patience_;
}

void RedlockNode::advance(short ready, std::vector<Answer>& answers) {
  const base::Time now = base::BootClock::now();
  if (connector_.is_closed()) {
    if (now < next_try_) {
      return;
    }
    moved_ = now;
  }
  // Between turns nobody reads: the answer may have been there for long.
  const bool looks = connector_.link().state() > RedisLink::State::connecting && is_overdue(now);
  if (auto moved = connector_.advance(looks ? POLLIN : ready); !moved) {
    lose(answers, moved.error());
    return;
  }
  take_answers(now, answers);
  if (connector_.is_closed()) {
    return;
  }
  if (const Stage now_at = stage(); now_at != reached_) {
    reached_ = now_at;
    moved_ = now;
  }
  if (is_overdue(now) || asked_.size() > kMostOwed) {
    lose(answers, {ErrorCode::unavailable, "it does not answer", std::nullopt});
  }
}

void RedlockNode::take_answers(base::Time now, std::vector<Answer>& answers) {
  if (!connector_.is_ready()) {
    return;
  }
  if (!asked_age_) {
    asked_age_ = now;
    append_resp_command(connector_.link().out(), "INFO", "server");
    teach();  // now: a node that is never among the first to answer would never learn it
    if (auto moved = connector_.advance(0); !moved) {
      lose(answers, moved.error());
      return;
    }
  }
  while (auto reply = connector_.link().take_reply()) {
    if (!introduced_) {
      introduce(*reply, answers);
    } else if (!asked_.empty()) {
      const std::uint64_t clock = clock_in(*reply);
      answers.push_back({asked_.front().tag, asked_.front().at, *std::move(reply), clock});
      asked_.pop_front();
    }
  }
}

// A restart cuts the connection, so its age need be asked only then.
void RedlockNode::introduce(const RespValue& info, std::vector<Answer>& answers) {
  introduced_ = true;
  trouble_.clear();
  // Unknown: as young as can be.
  const std::chrono::seconds age{static_cast<std::int64_t>(number_after(kUptime, info.text))};
  grown_up_ = base::BootClock::now() + guard_ - age;
  answers.push_back(
      {.asked = *asked_age_, .reply = std::nullopt, .clock = number_after(kClock, info.text)});
}

void RedlockNode::ask(std::uint64_t tag, std::string_view call) {
  connector_.link().out() += call;
  asked_.push_back({tag, base::BootClock::now()});
}

void RedlockNode::teach() {
  std::string call;
  append_resp_command(call, "SCRIPT", "LOAD", kRedlockScript);
  ask(0, call);
}

engine::Conversation::Wait RedlockNode::wait() const {
  return connector_.is_closed() ? engine::Conversation::Wait{.until = next_try_}
                                : connector_.wait();
}

}  // namespace holdfast::engines
