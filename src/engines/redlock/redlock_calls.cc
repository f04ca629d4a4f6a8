// What a RedlockTurn says to the nodes.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "engines/redis/redis_wire.h"
#include "engines/redlock/redlock_script.h"
#include "engines/redlock/redlock_turn.h"

namespace holdfast::engines {
namespace {

// As the script wants them.
void append_proposal(std::string& packed, std::uint64_t token, core::Duration ttl) {
  constexpr std::size_t kDigits = 16;
  for (const std::uint64_t number : {token, token == 0 ? 0 : token + core::kTokenStride - 1}) {
    const std::string digits = std::to_string(number);
    packed.append(kDigits - digits.size(), '0');
    packed += digits;
  }
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(ttl).count();
  packed += std::to_string(std::max<std::int64_t>(ms, 1));
}

}  // namespace

std::string RedlockTurn::written(const core::RequestId& id, std::uint64_t token) {
  std::string packed = 'W' + std::string{bytes_of(id)};
  append_packed_number(packed, static_cast<double>(token));
  return packed;
}

void RedlockTurn::append_head(std::string& call, std::string_view young) const {
  const auto max_ttl = std::chrono::duration_cast<std::chrono::milliseconds>(options_.max_ttl);
  append_resp_word(call, std::to_string(max_ttl.count()));
  append_resp_word(call, party_);
  append_resp_word(call, options_.first_start ? "1" : "0");
  append_resp_word(call, young);
  append_resp_word(call, options_.prefix);
}

void RedlockTurn::compose() {
  said_ = {};
  const Step step = phase_ == Phase::writing ? Step::write : Step::ask;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    if (item.step != step) {
      continue;
    }
    ++said_.count;
    append_resp_word(said_.keys, options_.key(batch_[i].name));
    std::string packed;
    if (step == Step::write) {
      packed = written(std::get<core::Acquire>(item.sent).id, item.token);
    } else if (const auto* renew = std::get_if<core::Renew>(&item.sent)) {
      append_packed(packed, held_.at(renew->id));
      packed.front() = 'N';
    } else {
      append_packed(packed, item.sent);
      if (const auto* acquire = std::get_if<core::Acquire>(&item.sent)) {
        append_proposal(packed, item.token, acquire->ttl);
      }
    }
    append_resp_word(said_.commands, packed);
  }
}

std::string RedlockTurn::call_for(std::size_t node, bool in_full, base::Time now) const {
  std::string call;
  script_.append_call(call, said_.count, kRedlockHead + said_.count, in_full);
  call += said_.keys;
  append_head(call, nodes_[node].is_young(now) ? "1" : "0");
  return call + said_.commands;
}

// With whatever else is to be told when the round is over.
void RedlockTurn::tell(std::size_t index, std::string_view packed) {
  ++told_.count;
  append_resp_word(told_.keys, options_.key(batch_[index].name));
  append_resp_word(told_.commands, packed);
}

// Everywhere; nobody waits for the answers. One call, however much it is: what a node owes us
// says how far it is behind.
void RedlockTurn::send_what_is_told() {
  const Said told = std::exchange(told_, {});
  if (told.count == 0) {
    return;
  }
  std::string call;
  script_.append_call(call, told.count, kRedlockHead + told.count, false);
  call += told.keys;
  append_head(call, "0");
  nodes_.tell(call + told.commands);
}

// Also where we were refused or heard nothing.
void RedlockTurn::let_go(std::size_t index, const core::RequestId& id) {
  tell(index, 'F' + std::string{bytes_of(id)});
}

}  // namespace holdfast::engines
