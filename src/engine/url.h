#pragma once

#include <holdfast/error.h>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::engine {

// scheme:path, or scheme://user:password@host:port,host:port/path, each with
// ?key=value&... Several hosts make it no RFC 3986 URL, hence a parser of our
// own. Parts are percent-decoded.
struct Url {
  struct Host {
    std::string name;
    std::uint16_t port = 0;  // 0: the engine's default
  };

  std::string scheme;
  std::string user;
  std::string password;
  std::vector<Host> hosts;
  std::string path;  // as written after the scheme or the hosts, leading '/' included
  std::map<std::string, std::string> query;

  // invalid_argument; the text never repeats the password.
  static Result<Url> parse(std::string_view text);

  // For logs and messages: passwords replaced by "***".
  std::string redacted() const;
};

}  // namespace holdfast::engine
