#pragma once

#include <string_view>

namespace holdfast {

// A fence for your own writes to Redis: a script that carries out one command
// only while the token is the newest that the key has seen. Send it with
// whatever Redis client you use, in your own language too; docs/fencing.md.
//
//   EVAL kRedisFence 2 <key> <fence> <token> <command> [words after the key...]
//
// <fence> is a key of its own that lives as long as the data, with the same
// hash tag. The reply is that of the command, or an error that begins with
// FENCED if a newer holder was there before. Without a command it only raises
// the fence: do that before you read what you will write.
inline constexpr std::string_view kRedisFence = R"lua(
local seen = tonumber(redis.call('GET', KEYS[2]) or '0')
local token = tonumber(ARGV[1])
if token == nil or token < seen then
  return redis.error_reply('FENCED token ' .. ARGV[1] .. ' is older than ' .. string.format('%.0f', seen))
end
redis.call('SET', KEYS[2], ARGV[1])
if not ARGV[2] then return 'OK' end
return redis.call(ARGV[2], KEYS[1], unpack(ARGV, 3))
)lua";

}  // namespace holdfast
