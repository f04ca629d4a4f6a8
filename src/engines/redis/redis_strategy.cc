#include "engines/redis/redis_strategy.h"

#include <chrono>

#include "core/lock_record.h"
#include "engine/batch.h"
#include "engines/redis/redis_wire.h"

namespace holdfast::engines {

RedisStrategy::RedisStrategy(const RedisOptions& options, const engine::EngineOptions& client,
                             std::string_view script, std::string_view look)
    : options_{options},
      client_{client},
      script_{script},
      look_{look},
      party_{pack_party(client.party)},
      bells_{options.prefix + "bell:"},
      channel_{bells_ + std::string{bytes_of(client.session)}} {}

std::optional<core::Outcome> RedisStrategy::objection(const core::Command& command) const {
  if (auto good = engine::check_name(command.name); !good) {
    return engine::failed(good.error());
  }
  return core::objection(command.operation);
}

std::string RedisStrategy::now() const {
  if (!client_.now) {
    return "";
  }
  const auto since = client_.now().time_since_epoch();
  return std::to_string(std::chrono::floor<std::chrono::microseconds>(since).count());
}

core::Operation RedisStrategy::translate(const core::Command& command) const {
  return command.operation;
}

Error RedisStrategy::failure(const core::Command&) const {
  return {ErrorCode::unavailable,
          "the tokens of this name are ahead of Redis's clock; was it set back?", std::nullopt};
}

bool RedisStrategy::is_listed(const std::string&) const {
  return true;
}

core::Outcome RedisStrategy::settle(const core::Command&, core::Outcome outcome) {
  return outcome;
}

void RedisStrategy::append_call(std::string& out, std::span<const core::Command> batch,
                                std::span<const std::size_t> commands, bool in_full) const {
  script_.append_call(out, commands.size(), 3 + commands.size(), in_full);
  for (const std::size_t each : commands) {
    append_resp_word(out, options_.key(batch[each].name));
  }
  append_resp_word(out, now());
  append_resp_word(out, party_);
  append_resp_word(out, bells_);
  std::string packed;
  for (const std::size_t each : commands) {
    packed.clear();
    append_packed(packed, translate(batch[each]));
    append_resp_word(out, packed);
  }
}

void RedisStrategy::append_look(std::string& out, std::span<const std::string> keys) const {
  look_.append_call(out, keys.size(), 1, true);
  for (const std::string& key : keys) {
    append_resp_word(out, key);
  }
  append_resp_word(out, now());
}

}  // namespace holdfast::engines
