// What a RedlockTurn says to the nodes.
#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>

#include "engines/redis/redis_wire.h"
#include "engines/redlock/redlock_script.h"
#include "engines/redlock/redlock_turn.h"

namespace holdfast::engines {
namespace {

// Longer than anything since its start: the client knows that the node is young.
constexpr std::string_view kForEver = "9007199254740991";

std::string owner_of(const core::RequestId& id) {
  return "hf1:" + std::string{bytes_of(id)};
}

}  // namespace

std::int64_t RedlockTurn::in_milliseconds(core::Duration time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return std::max<std::int64_t>(ms, 1);
}

void RedlockTurn::Said::add(std::string_view lock, std::string_view other,
                            std::initializer_list<std::string_view> command) {
  ++count;
  words += command.size();
  append_resp_word(keys, lock);
  append_resp_word(keys, other);
  for (const std::string_view word : command) {
    append_resp_word(commands, word);
  }
}

std::string RedlockTurn::call(const Said& said, bool in_full, bool young) const {
  std::string call;
  script_.append_call(call, 1 + 2 * said.count, kRedlockHead + said.words, in_full);
  append_resp_word(call, self_);
  call += said.keys;
  append_resp_word(call, max_ttl_);
  append_resp_word(call, young ? kForEver : guard_);
  append_resp_word(call, options_.prefix);
  return call += said.commands;
}

std::string RedlockTurn::call_for(std::size_t node, bool in_full, base::Time now) const {
  const bool young = nodes_[node].is_young(now);
  return in_full || young ? call(said_, in_full, young) : usual_call_;
}

void RedlockTurn::say_acquire(Said& said, char letter, const std::string& name,
                              const core::Acquire& asked, std::uint64_t token) const {
  const std::string key = options_.key(name);
  const std::string ttl = std::to_string(in_milliseconds(asked.ttl));
  const std::string number = std::to_string(token);
  const auto window = std::chrono::duration_cast<std::chrono::microseconds>(asked.window).count();
  said.add(key, other_key(letter == 'A' ? kRedlockTokens : kRedlockWaiters, key),
           {std::string_view{&letter, 1},
            asked.queue ? std::to_string(std::max<std::int64_t>(window, 1)) : "",
            owner_of(asked.id) + '-' + std::string{bytes_of(asked.session)} + ttl + '|',
            '|' + number + '|' + party_, ttl, number});
}

void RedlockTurn::say_with(Said& said, char letter, const std::string& name,
                           std::string_view word) const {
  const std::string key = options_.key(name);
  said.add(key, other_key(kRedlockWaiters, key), {std::string_view{&letter, 1}, word});
}

void RedlockTurn::say_written(Said& said, const std::string& name, const core::RequestId& id,
                              std::uint64_t token) const {
  const std::string key = options_.key(name);
  said.add(key, other_key(kRedlockWaiters, key), {"W", owner_of(id), std::to_string(token)});
}

// `key` as RedisOptions::key() spells it, behind the prefix.
std::string RedlockTurn::other_key(std::string_view what, const std::string& key) const {
  return options_.prefix + std::string{what} + key;
}

void RedlockTurn::say(const Item& item, const std::string& name) {
  if (const auto* acquire = std::get_if<core::Acquire>(&item.sent)) {
    if (item.step == Step::write) {
      say_written(said_, name, acquire->id, item.token);
    } else {
      say_acquire(said_, 'A', name, *acquire, item.token);
    }
  } else if (const auto* renew = std::get_if<core::Renew>(&item.sent)) {
    say_acquire(said_, 'N', name, held_.at(renew->id), 0);
  } else if (const auto* release = std::get_if<core::Release>(&item.sent)) {
    say_with(said_, 'R', name, owner_of(release->id));
  } else if (const auto* poll = std::get_if<core::Poll>(&item.sent)) {
    say_with(said_, 'P', name, owner_of(poll->id));
  } else if (const auto* revoke = std::get_if<core::Revoke>(&item.sent)) {
    say_with(said_, 'V', name, revoke->now ? "!" : "");
  }
}

void RedlockTurn::compose() {
  said_ = {};
  const Step step = phase_ == Phase::writing ? Step::write : Step::ask;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].step == step) {
      say(items_[i], batch_[i].name);
    }
  }
  usual_call_ = call(said_, false, false);
}

void RedlockTurn::say_told(Said& said, const Told& told) const {
  if (told.token != 0) {
    say_written(said, told.name, told.id, told.token);
  } else {
    say_with(said, 'F', told.name, owner_of(told.id));
  }
}

// Everywhere; nobody waits for the answers. One call, however much it is: what a node owes us
// says how far it is behind.
void RedlockTurn::send_what_is_told() {
  if (told_.empty()) {
    return;
  }
  last_told_ = std::exchange(told_, {});
  told_tag_ = ++tag_;
  Said said;
  for (const Told& each : last_told_) {
    say_told(said, each);
  }
  nodes_.tell(told_tag_, call(said, false, false));
}

// Has been asked for again, or is held.
bool RedlockTurn::is_wanted(const core::RequestId& id) const {
  return held_.contains(id) || std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
           const auto* acquire = std::get_if<core::Acquire>(&item.sent);
           return acquire != nullptr && item.step != Step::over && acquire->id == id;
         });
}

// To a node that did not know the script. What was asked since has overtaken it: a vote that was
// given meanwhile must not be taken back.
void RedlockTurn::tell_again(std::size_t node) {
  Said said;
  for (const Told& each : last_told_) {
    if (each.token != 0 || !is_wanted(each.id)) {
      say_told(said, each);
    }
  }
  if (said.count == 0) {
    nodes_[node].teach();
  } else {
    nodes_[node].ask(0, call(said, true, false));
  }
}

// Also where we were refused or heard nothing. With whatever else is to be told when the round
// is over.
void RedlockTurn::let_go(std::size_t index, const core::RequestId& id) {
  told_.push_back({.name = batch_[index].name, .id = id});
}

void RedlockTurn::note_written(std::size_t index, const core::RequestId& id) {
  told_.push_back({.name = batch_[index].name, .id = id, .token = items_[index].token});
}

}  // namespace holdfast::engines
