#pragma once

#include <holdfast/error.h>
#include <memory>
#include <string>
#include <string_view>

#include "engines/redis/redis_options.h"
#include "engines/tls/tls_session.h"

// What we need of OpenSSL.
namespace holdfast::engines {

// As Redis names scripts.
std::string sha1_in_hex(std::string_view text);

using RedisTls = Tls;
Result<std::shared_ptr<RedisTls>> redis_tls(const RedisAccess& access);

}  // namespace holdfast::engines
