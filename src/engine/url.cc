#include "engine/url.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace holdfast::engine {
namespace {

constexpr std::size_t kMaxBytes = 8192;
constexpr std::string_view kExample = "sqlite:/var/lib/app/locks.db";

// No message below quotes what it complains about: a password with an unescaped
// '/' or '@' ends up in any part of the URL.
tl::unexpected<Error> malformed(std::string text) {
  return fail(ErrorCode::invalid_argument, "malformed store URL: " + std::move(text));
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<unsigned> hex_value(char c) {
  if (is_digit(c)) {
    return static_cast<unsigned>(c - '0');
  }
  const char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') {
    return static_cast<unsigned>(lower - 'a' + 10);
  }
  return std::nullopt;
}

Result<std::string> decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    const auto high = i + 2 < text.size() ? hex_value(text[i + 1]) : std::nullopt;
    const auto low = high ? hex_value(text[i + 2]) : std::nullopt;
    if (!low) {
      return malformed("write % itself as %25");
    }
    out.push_back(static_cast<char>(*high * 16 + *low));
    i += 2;
  }
  return out;
}

// For people: whatever would end a part early, or spoil a terminal, as %XX.
void append_escaped(std::string& out, std::string_view text, std::string_view also) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '%' || also.find(c) != std::string_view::npos) {
      out += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    } else {
      out.push_back(c);
    }
  }
}

bool is_secret(std::string_view key) {
  return key == "password" || key == "passwd" || key == "secret" || key == "token";
}

// The part of `text` before `end`, which is taken away with it.
std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

Result<void> parse_scheme(std::string_view& rest, Url& url) {
  const std::size_t colon = rest.find(':');
  const std::string_view scheme = rest.substr(0, colon);
  const bool good = colon != std::string_view::npos && !scheme.empty() && is_letter(scheme[0]) &&
                    std::all_of(scheme.begin(), scheme.end(), [](char c) {
                      return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
                    });
  if (!good) {
    return malformed("it starts with the kind of store and a colon, as in " +
                     std::string{kExample});
  }
  for (const char c : scheme) {
    url.scheme.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c);
  }
  rest.remove_prefix(colon + 1);
  return {};
}

Result<Url::Host> parse_host(std::string_view text) {
  Url::Host host;
  std::string_view name = text.substr(0, text.rfind(':'));
  std::string_view port = name.size() < text.size() ? text.substr(name.size() + 1) : "";
  bool has_port = name.size() < text.size();
  if (text.starts_with('[')) {  // IPv6 is full of colons
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) {
      return malformed("an IPv6 address stands in [brackets]");
    }
    name = text.substr(1, close - 1);
    const std::string_view after = text.substr(close + 1);
    has_port = !after.empty();
    if (has_port && after[0] != ':') {
      return malformed("only a port can follow an IPv6 address");
    }
    port = has_port ? after.substr(1) : "";
  } else if (name.find(':') != std::string_view::npos) {
    return malformed("an IPv6 address stands in [brackets]");
  }
  auto decoded_name = decoded(name);
  if (!decoded_name) {
    return tl::unexpected{decoded_name.error()};
  }
  if (decoded_name->empty()) {
    return malformed("a host is missing");
  }
  host.name = *std::move(decoded_name);
  if (has_port) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), host.port);
    if (error != std::errc{} || end != port.data() + port.size() || host.port == 0) {
      return malformed(
          "a port is a number from 1 to 65535 (in a password write / ? : as %2F %3F %3A)");
    }
  }
  return host;
}

Result<void> parse_authority(std::string_view authority, Url& url) {
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    std::string_view password = authority.substr(0, at);
    const std::string_view user = take_until(password, ':');
    auto decoded_user = decoded(user);
    auto decoded_password = decoded(password);
    if (!decoded_user || !decoded_password) {
      return malformed("write % in a user or password as %25");
    }
    url.user = *std::move(decoded_user);
    url.password = *std::move(decoded_password);
    authority.remove_prefix(at + 1);
  }
  while (!authority.empty()) {
    const bool more = authority.find(',') != std::string_view::npos;
    auto host = parse_host(take_until(authority, ','));
    if (!host) {
      return tl::unexpected{host.error()};
    }
    url.hosts.push_back(*std::move(host));
    if (more && authority.empty()) {
      return malformed("a host is missing after a comma");
    }
  }
  return {};
}

Result<void> parse_query(std::string_view query, Url& url) {
  while (!query.empty()) {
    std::string_view value = take_until(query, '&');
    auto key = decoded(take_until(value, '='));
    auto text = decoded(value);
    if (!key || !text) {
      return malformed("write % in an option as %25");
    }
    if (key->empty()) {
      return malformed("an option is written key=value, several are joined by &");
    }
    if (!url.query.emplace(*key, *std::move(text)).second) {
      return malformed("an option is given twice");
    }
  }
  return {};
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return malformed("it is too long");
  }
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
    return malformed("write control characters as %XX");
  }
  Url url;
  Result<void> good = parse_scheme(text, url);
  std::string_view rest = text;
  const std::string_view before_query = take_until(rest, '?');
  std::string_view path = before_query;
  if (good && path.starts_with("//")) {
    path.remove_prefix(2);
    const std::size_t slash = std::min(path.find('/'), path.size());
    good = parse_authority(path.substr(0, slash), url);
    path.remove_prefix(slash);
  }
  if (good) {
    good = parse_query(rest, url);
  }
  if (!good) {
    return tl::unexpected{good.error()};
  }
  auto decoded_path = decoded(path);
  if (!decoded_path) {
    return tl::unexpected{decoded_path.error()};
  }
  url.path = *std::move(decoded_path);
  return url;
}

std::string Url::redacted() const {
  std::string out = scheme + ':';
  const bool has_authority = !hosts.empty() || !user.empty() || !password.empty();
  if (has_authority || path.starts_with("//")) {
    out += "//";
    append_escaped(out, user, "/?:@,");
    out += password.empty() ? "" : ":***";
    out += user.empty() && password.empty() ? "" : "@";
    for (const Host& host : hosts) {
      const bool brackets = host.name.find(':') != std::string::npos;
      out += &host == hosts.data() ? "" : ",";
      out += brackets ? "[" : "";
      append_escaped(out, host.name, "/?@,[]");
      out += brackets ? "]" : "";
      out += host.port == 0 ? "" : ':' + std::to_string(host.port);
    }
  }
  append_escaped(out, path, "?");
  char separator = '?';
  for (const auto& [key, value] : query) {
    out.push_back(std::exchange(separator, '&'));
    append_escaped(out, key, "&=");
    out.push_back('=');
    append_escaped(out, is_secret(key) ? "***" : value, "&");
  }
  return out;
}

}  // namespace holdfast::engine
