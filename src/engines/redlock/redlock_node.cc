#include "engines/redlock/redlock_node.h"

#include <charconv>
#include <chrono>
#include <utility>

#include "core/quorum.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kRetry = 100ms;
constexpr std::string_view kUptime = "uptime_in_seconds:";
// A node that owes so many answers is as good as gone.
constexpr std::size_t kMostOwed = 256;

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
  asked_age_ = false;
  trouble_ = error.text;
  next_try_ = base::BootClock::now() + kRetry;
  for (const Question& question : std::exchange(asked_, {})) {
    answers.push_back({question.tag, std::nullopt});
  }
}

void RedlockNode::advance(short ready, std::vector<Answer>& answers) {
  const base::Time now = base::BootClock::now();
  if (connector_.is_closed()) {
    if (now < next_try_) {
      return;
    }
    began_ = now;
  }
  if (auto moved = connector_.advance(ready); !moved) {
    lose(answers, moved.error());
    return;
  }
  const base::Time since = !introduced_ ? began_ : asked_.empty() ? now : asked_.front().at;
  if (now - since > patience_ || asked_.size() > kMostOwed) {
    lose(answers, {ErrorCode::unavailable, "it does not answer", std::nullopt});
    return;
  }
  if (!connector_.is_ready()) {
    return;
  }
  if (!std::exchange(asked_age_, true)) {
    append_resp_command(connector_.link().out(), "INFO", "server");
    if (auto moved = connector_.advance(0); !moved) {
      lose(answers, moved.error());
      return;
    }
  }
  while (auto reply = connector_.link().take_reply()) {
    if (!introduced_) {
      introduce(*reply);
    } else if (!asked_.empty()) {
      answers.push_back({asked_.front().tag, *std::move(reply)});
      asked_.pop_front();
    }
  }
}

// A restart cuts the connection, so its age need be asked only then.
void RedlockNode::introduce(const RespValue& info) {
  introduced_ = true;
  trouble_.clear();
  std::int64_t seconds = 0;  // unknown: as young as can be
  if (const std::size_t at = info.text.find(kUptime); at != std::string::npos) {
    const char* const digits = info.text.data() + at + kUptime.size();
    std::from_chars(digits, info.text.data() + info.text.size(), seconds);
  }
  grown_up_ = base::BootClock::now() + guard_ - std::chrono::seconds{seconds};
}

void RedlockNode::ask(std::uint64_t tag, std::string_view call) {
  connector_.link().out() += call;
  asked_.push_back({tag, base::BootClock::now()});
}

engine::Conversation::Wait RedlockNode::wait() const {
  return connector_.is_closed() ? engine::Conversation::Wait{.until = next_try_}
                                : connector_.wait();
}

}  // namespace holdfast::engines
