#include "engines/etcd/etcd_layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

namespace holdfast::engines {
namespace {

constexpr unsigned kTokenBits = 12;
constexpr unsigned kUpperHalf = 32;  // of the blocks of a revision
static_assert((2 * kUpperHalf * core::kTokenStride) >> kTokenBits == 1);
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

// The first token of a block.
std::optional<std::uint64_t> etcd_block(std::int64_t revision, unsigned block) {
  const auto number = static_cast<std::uint64_t>(revision);
  if (revision <= 0 || number > (core::kMaxToken >> kTokenBits) - 1) {
    return std::nullopt;
  }
  return (number << kTokenBits) + block * core::kTokenStride;
}

bool fits(std::span<const Entrant> line, const core::Shape& shape) {
  std::uint64_t out = shape.permits;
  for (const Entrant& each : line) {
    if (!each.holds) {
      continue;
    }
    const bool alike = each.note.shape.mode == shape.mode;
    if (each.note.revoked || !alike || shape.mode == Mode::exclusive) {
      return false;
    }
    out += each.note.shape.permits;
  }
  return shape.mode != Mode::permits || out <= shape.limit;
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

Entrant entrant_of(EtcdKey key) {
  Entrant entrant{.note = EtcdNote::parse(key.value)};
  entrant.request = entrant.note.request ? entrant.note.request : etcd_request_of(key.key);
  entrant.token =
      entrant.note.token != 0 ? entrant.note.token : etcd_block(key.create_revision, 0).value_or(0);
  entrant.key = std::move(key);
  return entrant;
}

// In order, and it stops at the first that does not fit: who wants much is not
// overtaken for ever by those that want little. While a reader waits to become
// the writer, those who read when it began to wait go on, and nobody else.
std::vector<Entrant> line_up(std::vector<EtcdKey> keys) {
  std::vector<Entrant> line;
  std::int64_t readers_until = 0;
  for (EtcdKey& key : keys) {
    line.push_back(entrant_of(std::move(key)));
    readers_until = std::max(readers_until, line.back().note.readers_until);
  }
  bool open = true;
  for (std::size_t i = 0; i < line.size(); ++i) {
    Entrant& each = line[i];
    const bool fit = readers_until != 0 ? each.key.create_revision <= readers_until
                                        : open && fits({line.data(), i}, each.note.shape);
    each.holds = fit || each.note.granted;
    open = open && each.holds;
  }
  return line;
}

const Entrant* entrant_in(const std::vector<Entrant>& line, std::string_view key,
                          const core::RequestId& id) {
  const auto found = std::ranges::find_if(
      line, [&](const Entrant& each) { return each.key.key == key && each.request == id; });
  return found == line.end() ? nullptr : &*found;
}

EtcdStanding standing_of(const std::vector<Entrant>& line, std::string_view key,
                         const core::RequestId& id) {
  EtcdStanding standing;
  const Entrant* const mine = entrant_in(line, key, id);
  if (mine == nullptr) {
    return standing;
  }
  standing.found = true;
  standing.holds = mine->holds;
  standing.revoked = mine->note.revoked;
  standing.create_revision = mine->key.create_revision;
  standing.mod_revision = mine->key.mod_revision;
  standing.token = mine->token;
  for (const Entrant* each = line.data(); each != mine; ++each) {
    if (each->note.shape.limit != mine->note.shape.limit) {
      standing.refused = true;
      standing.limit = each->note.shape.limit;
    }
    standing.ahead += each->holds ? 0U : 1U;
  }
  if (standing.holds) {
    return standing;
  }
  if (mine->note.shape.mode == Mode::permits && standing.ahead == 0) {
    standing.blocker = key.substr(0, key.rfind('/') + 1);  // whoever gives some back
    return standing;
  }
  // A reader waits for the nearest writer.
  const bool reads = mine->note.shape.mode == Mode::shared;
  const auto blocks = [&](const Entrant& each) {
    return !reads || each.note.shape.mode != Mode::shared || each.note.revoked ||
           each.note.readers_until != 0;
  };
  for (const Entrant* each = line.data(); each != mine; ++each) {
    if (blocks(*each)) {
      standing.blocker = each->key.key;
    }
  }
  return standing;
}

// What was granted before, as far as it is still there, is in the line; readers
// that left were created before the first who waits, or before `revision`, and
// what they were handed over is in the lower half of their blocks.
std::optional<std::uint64_t> etcd_token_alone(const std::vector<Entrant>& line,
                                              std::int64_t revision) {
  std::int64_t base = revision;
  std::uint64_t highest = 0;
  for (const Entrant& each : line) {
    if (each.holds) {
      highest = std::max(highest, each.token);
    } else {
      base = std::min(base, each.key.create_revision - 1);
    }
  }
  const auto here = etcd_block(base, kUpperHalf);
  const std::uint64_t next = (highest / core::kTokenStride + 1) * core::kTokenStride;
  if (!here || std::max(*here, next) >> kTokenBits != static_cast<std::uint64_t>(base)) {
    return std::nullopt;
  }
  return std::max(*here, next);
}

std::optional<std::uint64_t> etcd_token_after(const Entrant& giver) {
  const std::uint64_t next = (giver.token / core::kTokenStride + 1) * core::kTokenStride;
  const std::uint64_t half = std::uint64_t{kUpperHalf} * core::kTokenStride;
  return giver.token != 0 && next % half != 0 ? std::optional{next} : std::nullopt;
}

}  // namespace holdfast::engines
