#include "engines/redis/redis_script.h"

#include <openssl/evp.h>

#include <array>

#include "engines/redis/resp.h"

namespace holdfast::engines {

RedisScript::RedisScript(std::string_view text) : text_{text} {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  for (unsigned i = 0; i < size; ++i) {
    name_ += {kDigits[digest[i] >> 4U], kDigits[digest[i] & 15U]};
  }
}

void RedisScript::append_call(std::string& out, std::size_t keys, std::size_t arguments,
                              bool in_full) const {
  append_resp_head(out, 3 + keys + arguments);
  append_resp_word(out, in_full ? "EVAL" : "EVALSHA");
  append_resp_word(out, in_full ? text_ : std::string_view{name_});
  append_resp_word(out, std::to_string(keys));
}

}  // namespace holdfast::engines
