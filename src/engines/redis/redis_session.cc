#include "engines/redis/redis_session.h"

#include <openssl/evp.h>

#include <array>

#include "base/fork.h"

namespace holdfast::engines {

std::string sha1_in_hex(std::string_view text) {
  const base::ForksWait until_ready;  // OpenSSL sets itself up
  static constexpr char kDigits[] = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += {kDigits[digest[i] >> 4U], kDigits[digest[i] & 15U]};
  }
  return hex;
}

Result<std::shared_ptr<RedisTls>> redis_tls(const RedisAccess& access) {
  return Tls::make({.verify = !access.insecure, .ca_file = access.ca_file});
}

}  // namespace holdfast::engines
