#include "engines/redis/redis_turn.h"

#include <algorithm>
#include <utility>

#include "engine/batch.h"
#include "engines/redis/redis_errors.h"
#include "engines/redis/redis_wire.h"

namespace holdfast::engines {
namespace {

using namespace std::chrono_literals;

// A call keeps Redis from everybody else while it runs.
constexpr std::size_t kMostInACall = 64;
constexpr base::Duration kFirstPause = 10ms;
constexpr base::Duration kLongestPause = 250ms;
// A link that was idle for this long may have been cut: look before the send,
// which cannot be taken back.
constexpr base::Duration kIdle = 100ms;

Error no_answer() {
  return {ErrorCode::outcome_unknown, "Redis did not answer in time", std::nullopt};
}

bool can_be_a_grant(const core::Outcome& outcome) {
  return outcome.status == core::Status::granted;
}

}  // namespace

RedisTurn::RedisTurn(const RedisOptions& options, RedisStrategy& strategy,
                     RedisConnector& connector)
    : options_{options}, strategy_{strategy}, connector_{connector} {}

void RedisTurn::begin(std::span<const core::Command> batch, engine::Done done) {
  batch_ = batch;
  done_ = std::move(done);
  outcomes_.assign(batch.size(), {});
  given_up_ = false;
  pause_ = kFirstPause;
  trouble_.reset();
  demoted_ = false;
  form_calls();
  deadline_ = base::BootClock::now() + options_.access.timeout;
  phase_ = calls_.empty() ? Phase::over : Phase::connecting;
}

void RedisTurn::form_calls() {
  calls_.clear();
  call_of_.clear();
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (auto wrong = strategy_.objection(batch_[i])) {
      outcomes_[i] = *std::move(wrong);
      continue;
    }
    const bool full = calls_.empty() || calls_.back().commands.size() >= kMostInACall;
    const auto [place, added] =
        call_of_.try_emplace(batch_[i].name, calls_.size() - (full ? 0 : 1));
    if (added && full) {
      calls_.emplace_back();
    }
    calls_[place->second].commands.push_back(i);
  }
}

std::optional<engine::Conversation::Wait> RedisTurn::advance(short ready) {
  const base::Time now = base::BootClock::now();
  if (given_up_ && phase_ != Phase::over) {
    if (phase_ == Phase::talking) {
      connector_.close();
    }
    end({phase_ == Phase::talking ? ErrorCode::outcome_unknown : ErrorCode::unavailable,
         "the client ended before Redis answered", std::nullopt});
  }
  if (phase_ == Phase::pausing && now >= resume_) {
    phase_ = Phase::connecting;
    ready = 0;
  }
  if (phase_ == Phase::connecting) {
    connect(ready, now);
    ready = 0;
  }
  if (phase_ == Phase::talking) {
    talk(ready, now);
  }
  if (phase_ == Phase::over) {
    return std::nullopt;
  }
  Wait wait = phase_ == Phase::pausing ? Wait{.until = resume_} : connector_.wait();
  if (phase_ != Phase::pausing) {
    wait.until = std::min(wait.until, phase_ == Phase::talking ? answer_by_ : deadline_);
  }
  return wait;
}

void RedisTurn::connect(short ready, base::Time now) {
  if (connector_.is_ready() && now - last_used_ > kIdle && connector_.link().has_ended()) {
    connector_.close();
  }
  if (!connector_.is_ready()) {
    if (auto moved = connector_.advance(ready); !moved) {
      trouble_ = moved.error();
      if (moved.error().code == ErrorCode::unavailable) {
        try_again(now);
      } else {
        end(moved.error());
      }
      return;
    }
  }
  if (connector_.is_ready()) {
    send_calls(now);
  } else if (now >= deadline_) {
    connector_.close();
    end({ErrorCode::unavailable, "Redis does not answer in time", std::nullopt});
  }
}

// Redis did nothing, for a reason that may pass.
void RedisTurn::try_again(base::Time now) {
  if (now >= deadline_) {
    end(*trouble_);
    return;
  }
  phase_ = Phase::pausing;
  resume_ = std::min(now + pause_, deadline_);
  pause_ = std::min(2 * pause_, kLongestPause);
}

bool RedisTurn::asks_replicas() const {
  return options_.wait_replicas > 0 &&
         std::any_of(batch_.begin(), batch_.end(), [](const core::Command& command) {
           return !std::holds_alternative<core::Release>(command.operation);
         });
}

void RedisTurn::send_calls(base::Time now) {
  std::string& out = connector_.link().out();
  for (Call& call : calls_) {
    strategy_.append_call(out, batch_, call.commands, call.in_full);
    call.answered = false;
  }
  acknowledgement_ = asks_replicas();
  if (acknowledgement_) {
    const auto half = std::chrono::ceil<std::chrono::milliseconds>(options_.access.timeout / 2);
    append_resp_command(out, "WAIT", std::to_string(options_.wait_replicas),
                        std::to_string(half.count()));
  }
  next_reply_ = 0;
  trouble_.reset();
  demoted_ = false;
  last_used_ = now;
  answer_by_ = now + options_.access.timeout;
  phase_ = Phase::talking;
}

void RedisTurn::talk(short ready, base::Time now) {
  if (auto moved = connector_.link().advance(ready); !moved) {
    take_replies();
    Error error = moved.error();
    error.code = ErrorCode::outcome_unknown;
    end(error);
    return;
  }
  take_replies();
  if (next_reply_ == calls_.size() && !acknowledgement_) {
    last_used_ = now;
    after_replies(now);
  } else if (now >= answer_by_) {
    connector_.close();  // what comes late must not answer somebody else
    end(no_answer());
  }
}

void RedisTurn::take_replies() {
  while (next_reply_ < calls_.size() || acknowledgement_) {
    const auto reply = connector_.link().take_reply();
    if (!reply) {
      return;
    }
    if (next_reply_ < calls_.size()) {
      on_reply(calls_[next_reply_++], *reply);
    } else {
      acknowledgement_ = false;
      on_acknowledged(*reply);
    }
  }
}

void RedisTurn::on_reply(Call& call, const RespValue& reply) {
  if (reply.is_error()) {
    on_error(call, reply.text);
    return;
  }
  const std::string_view packed = reply.items.empty() ? "" : std::string_view{reply.items[0].text};
  call.answered = true;
  if (packed.size() != call.commands.size() * kPackedOutcome) {
    for (const std::size_t each : call.commands) {
      outcomes_[each] = engine::failed(
          {ErrorCode::outcome_unknown, "Redis's answer makes no sense", std::nullopt});
    }
    return;
  }
  std::vector<std::size_t> again;
  for (std::size_t i = 0; i < call.commands.size(); ++i) {
    const std::size_t command = call.commands[i];
    const std::string& refusal = i + 1 < reply.items.size() ? reply.items[i + 1].text : "";
    core::Outcome outcome = unpack_outcome(packed.substr(i * kPackedOutcome, kPackedOutcome));
    if (!refusal.empty()) {
      outcome = engine::failed(redis_error(refusal));
      if (is_passing(refusal)) {
        note_trouble(refusal);
        again.push_back(command);
      }
    } else if (outcome.status == core::Status::failed) {
      outcome.error = strategy_.failure(batch_[command]);
    } else {
      outcome = strategy_.settle(batch_[command], std::move(outcome));
    }
    outcomes_[command] = std::move(outcome);
  }
  if (!again.empty()) {
    call.commands = std::move(again);
    call.answered = false;
  }
}

void RedisTurn::on_error(Call& call, const std::string& text) {
  if (text.starts_with("NOSCRIPT")) {
    call.in_full = true;
    return;
  }
  for (const std::size_t each : call.commands) {
    outcomes_[each] = engine::failed(redis_error(text));
  }
  call.answered = !is_passing(text);
  if (!call.answered) {
    note_trouble(text);
  }
}

void RedisTurn::note_trouble(const std::string& text) {
  trouble_ = redis_error(text);
  demoted_ = demoted_ || is_demoted(text);
}

// A grant that a failover would forget is none yet.
void RedisTurn::on_acknowledged(const RespValue& reply) {
  if (reply.is(RespValue::Kind::integer) &&
      reply.integer >= static_cast<std::int64_t>(options_.wait_replicas)) {
    return;
  }
  for (core::Outcome& outcome : outcomes_) {
    if (can_be_a_grant(outcome)) {
      outcome =
          engine::failed({ErrorCode::outcome_unknown,
                          "too few replicas have acknowledged the grant in time", std::nullopt});
    }
  }
}

void RedisTurn::after_replies(base::Time now) {
  std::erase_if(calls_, [](const Call& call) { return call.answered; });
  if (calls_.empty()) {
    phase_ = Phase::over;
    return;
  }
  if (demoted_) {
    connector_.close();
  }
  if (trouble_) {
    try_again(now);
  } else {
    send_calls(now);  // only the script was missing
    talk(0, now);
  }
}

void RedisTurn::fail_unanswered(const Error& error) {
  for (const Call& call : calls_) {
    if (!call.answered) {
      for (const std::size_t each : call.commands) {
        outcomes_[each] = engine::failed(error);
      }
    }
  }
}

void RedisTurn::end(const Error& error) {
  fail_unanswered(error);
  phase_ = Phase::over;
}

void RedisTurn::finish() {
  // Whoever is told may begin the next turn at once.
  const engine::Done done = std::exchange(done_, nullptr);
  done(std::exchange(outcomes_, {}));
}

}  // namespace holdfast::engines
