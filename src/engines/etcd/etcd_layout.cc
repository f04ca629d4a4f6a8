#include "engines/etcd/etcd_layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace holdfast::engines {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";
constexpr std::string_view kNote = "holdfast";
constexpr std::string_view kValues = "%values/";
constexpr std::string_view kHoldOffs = "%hold-offs/";
constexpr std::string_view kGone = "%gone/";

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte < 0x7f && c != '/' && c != '%';
}

std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (is_plain(c)) {
      text.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text.push_back('%');
      text.push_back(kHexDigits[byte >> 4U]);
      text.push_back(kHexDigits[byte & 0xfU]);
    }
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr ==
            text.data() + i + 3) {
      name.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      name.push_back(text[i]);
    }
  }
  return name;
}

std::string line_safe(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

template <typename Number>
Number number_in(std::string_view text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::optional<core::RequestId> id_from(std::string_view hex) {
  core::RequestId id;
  if (hex.size() != id.bytes.size() * 2) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const char* digits = hex.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, id.bytes[i], 16).ptr != digits + 2) {
      return std::nullopt;
    }
  }
  return id;
}

}  // namespace

Result<std::string> etcd_directory(const EtcdOptions& options, std::string_view name) {
  if (!options.verbatim) {
    return options.prefix + escaped(name) + "/";
  }
  if (name.starts_with('/') || name.ends_with('/') || name.find("//") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument,
                "with names=verbatim a lock's name may contain / only between other characters");
  }
  return options.prefix + std::string{name} + "/";
}

std::string etcd_value_key(const EtcdOptions& options, std::string_view name) {
  return options.prefix + std::string{kValues} + escaped(name);
}

std::string etcd_hold_off_key(const EtcdOptions& options, std::string_view name) {
  return options.prefix + std::string{kHoldOffs} + escaped(name);
}

std::string etcd_gone_key(const EtcdOptions& options, const core::RequestId& id) {
  return options.prefix + std::string{kGone} + id.hex();
}

std::string etcd_unescaped(std::string_view name) {
  return unescaped(name);
}

std::optional<std::string> etcd_name(const EtcdOptions& options, std::string_view key) {
  for (const std::string_view other : {kValues, kHoldOffs, kGone}) {
    if (key.starts_with(options.prefix + std::string{other})) {
      return std::nullopt;
    }
  }
  const auto slash = key.rfind('/');
  if (!key.starts_with(options.prefix) || slash == std::string_view::npos ||
      slash < options.prefix.size()) {
    return std::nullopt;
  }
  const std::string_view name = key.substr(options.prefix.size(), slash - options.prefix.size());
  if (options.verbatim) {
    return std::string{name};
  }
  return name.find('/') == std::string_view::npos ? std::optional{unescaped(name)} : std::nullopt;
}

std::string etcd_key(std::string_view directory, std::int64_t lease, const core::RequestId& id) {
  std::array<char, 16> hex{};
  const auto end =
      std::to_chars(hex.data(), hex.data() + hex.size(), static_cast<std::uint64_t>(lease), 16).ptr;
  return std::string{directory} + std::string(hex.data(), end) + "-" + id.hex();
}

std::string etcd_directory_of(std::string_view key) {
  return std::string{key.substr(0, key.rfind('/') + 1)};
}

std::optional<core::RequestId> etcd_request_of(std::string_view key) {
  const auto dash = key.rfind('-');
  return dash == std::string_view::npos ? std::nullopt : id_from(key.substr(dash + 1));
}

std::string EtcdNote::text() const {
  std::string text{kNote};
  text.append(revoked ? " revoked" : "").append(granted ? " granted" : "").append("\n");
  text.append(line_safe(party.label)).append("\n").append(line_safe(party.host)).append("\n");
  text.append(std::to_string(party.pid)).append("\n").append(std::to_string(since_ms)).append("\n");
  text.append(to_string(shape.mode)).append("\n").append(std::to_string(shape.permits));
  text.append("\n").append(std::to_string(shape.limit)).append("\n");
  if (token != 0 || readers_until != 0 || request) {
    text.append(std::to_string(token)).append("\n");
    text.append(std::to_string(readers_until)).append("\n");
    text.append(request ? request->hex() : "").append("\n");
  }
  return text;
}

EtcdNote EtcdNote::parse(std::string_view text) {
  EtcdNote note;
  const std::string_view head = next_line(text);
  if (!head.starts_with(kNote)) {
    note.ours = false;
    note.party.label = "etcd client";
    note.party.host = line_safe(std::string{head.substr(0, 64)});
    return note;
  }
  note.revoked = head.find(" revoked") != std::string_view::npos;
  note.granted = head.find(" granted") != std::string_view::npos;
  note.party.label = next_line(text);
  note.party.host = next_line(text);
  note.party.pid = number_in<std::int64_t>(next_line(text));
  note.since_ms = number_in<std::int64_t>(next_line(text));
  const std::string_view mode = next_line(text);
  for (const Mode each : {Mode::shared, Mode::permits}) {
    note.shape.mode = mode == to_string(each) ? each : note.shape.mode;
  }
  note.shape.permits = number_in<std::uint32_t>(next_line(text));
  note.shape.limit = number_in<std::uint32_t>(next_line(text));
  note.token = number_in<std::uint64_t>(next_line(text));
  note.readers_until = number_in<std::int64_t>(next_line(text));
  note.request = id_from(next_line(text));
  return note;
}

}  // namespace holdfast::engines
