#include "engines/redis/redis_script.h"

#include "engines/redis/redis_session.h"
#include "engines/redis/resp.h"

namespace holdfast::engines {

RedisScript::RedisScript(std::string_view text) : text_{text}, name_{sha1_in_hex(text)} {}

void RedisScript::append_call(std::string& out, std::size_t keys, std::size_t arguments,
                              bool in_full) const {
  append_resp_head(out, 3 + keys + arguments);
  append_resp_word(out, in_full ? "EVAL" : "EVALSHA");
  append_resp_word(out, in_full ? text_ : std::string_view{name_});
  append_resp_word(out, std::to_string(keys));
}

}  // namespace holdfast::engines
