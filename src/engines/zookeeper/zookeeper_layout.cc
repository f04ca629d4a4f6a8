#include "engines/zookeeper/zookeeper_layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

namespace holdfast::engines {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte < 0x7f && c != '/' && c != '%';
}

bool is_dots(std::string_view text) {
  return text == "." || text == "..";
}

void append_escaped(std::string& text, char c) {
  const auto byte = static_cast<unsigned char>(c);
  text.push_back('%');
  text.push_back(kHexDigits[byte >> 4U]);
  text.push_back(kHexDigits[byte & 0xfU]);
}

std::string escaped(std::string_view name) {
  std::string text;
  // "zookeeper" is the server's own where the root is "/".
  const bool reserved = is_dots(name) || name == "zookeeper";
  for (const char c : name) {
    if (is_plain(c) && !reserved) {
      text.push_back(c);
    } else {
      append_escaped(text, c);
    }
  }
  return text;
}

bool is_path(std::string_view name) {
  std::size_t start = 0;
  while (start <= name.size()) {
    const std::size_t end = std::min(name.find('/', start), name.size());
    const std::string_view part = name.substr(start, end - start);
    const bool odd = std::ranges::any_of(part, [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f;
    });
    if (part.empty() || is_dots(part) || odd) {
      return false;
    }
    start = end + 1;
  }
  return true;
}

struct Marker {
  NodeKind kind;
  std::string_view text;
};
constexpr std::array kCurator{
    Marker{NodeKind::mutex, "-lock-"}, Marker{NodeKind::reader, "-__READ__"},
    Marker{NodeKind::writer, "-__WRIT__"}, Marker{NodeKind::lease, "-lease-"}};
constexpr std::array kKazoo{Marker{NodeKind::writer, "__lock__"},
                            Marker{NodeKind::reader, "__rlock__"}};

std::span<const Marker> markers(ZookeeperOptions::Layout layout) {
  if (layout == ZookeeperOptions::Layout::kazoo) {
    return kKazoo;
  }
  return kCurator;
}

std::optional<LockNode> parse_node(ZookeeperOptions::Layout layout, const std::string& name) {
  for (const Marker& marker : markers(layout)) {
    const auto at = name.rfind(marker.text);
    if (at == std::string::npos) {
      continue;
    }
    LockNode node{.name = name, .kind = marker.kind, .sequence = 0, .guid = name.substr(0, at)};
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + at + marker.text.size(), end, node.sequence);
    if (parsed.ec != std::errc{} || parsed.ptr != end) {
      continue;
    }
    if (node.guid.starts_with("_c_")) {
      node.guid.erase(0, 3);
    }
    std::erase(node.guid, '-');
    return node;
  }
  return std::nullopt;
}

std::string line_safe(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

// In the order of LockNote::Kind.
constexpr std::array<std::string_view, 5> kKinds{"holdfast", "holdfast lock", "holdfast mutex",
                                                 "holdfast rw", "holdfast semaphore "};
constexpr std::string_view kRevoked = "revoked ";

constexpr std::string_view kNote = "holdfast\n";
constexpr std::string_view kRevokedNote = "holdfast revoked\n";

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

}  // namespace

Result<std::string> zookeeper_path(const ZookeeperOptions& options, std::string_view name) {
  if (!options.verbatim) {
    return options.root + "/" + escaped(name);
  }
  if (!is_path(name)) {
    return fail(ErrorCode::invalid_argument,
                "with names=verbatim a lock's name must be a ZooKeeper path such as a or a/b");
  }
  return options.root + "/" + std::string{name};
}

std::string zookeeper_name(const ZookeeperOptions& options, std::string_view child) {
  if (options.verbatim) {
    return std::string{child};
  }
  std::string name;
  for (std::size_t i = 0; i < child.size(); ++i) {
    unsigned byte = 0;
    if (child[i] == '%' && i + 2 < child.size() &&
        std::from_chars(child.data() + i + 1, child.data() + i + 3, byte, 16).ptr ==
            child.data() + i + 3) {
      name.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      name.push_back(child[i]);
    }
  }
  return name;
}

std::string guid_of(const core::RequestId& id) {
  return id.hex();
}

std::string node_prefix(ZookeeperOptions::Layout layout, NodeKind kind, const core::RequestId& id) {
  std::string hex = id.hex();
  std::string text;
  if (layout == ZookeeperOptions::Layout::curator) {
    for (const std::size_t at : {20U, 16U, 12U, 8U}) {
      hex.insert(at, "-");
    }
    text = "_c_";
  }
  text += hex;
  for (const Marker& marker : markers(layout)) {
    if (marker.kind == kind) {
      return text.append(marker.text);
    }
  }
  return text.append(markers(layout).front().text);  // kazoo's mutex is its writer
}

std::vector<LockNode> lock_nodes(ZookeeperOptions::Layout layout,
                                 const std::vector<std::string>& children) {
  std::vector<LockNode> nodes;
  for (const std::string& child : children) {
    if (auto node = parse_node(layout, child)) {
      nodes.push_back(*std::move(node));
    }
  }
  if (!nodes.empty()) {
    // The number wraps after 2^31 nodes: order by the distance from any of them.
    const auto base = static_cast<std::uint32_t>(nodes.front().sequence);
    const auto rank = [base](const LockNode& node) {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(node.sequence) - base);
    };
    std::ranges::sort(nodes, {}, rank);
  }
  return nodes;
}

// Whoever stands first holds; a reader holds with readers only in front.
Standing standing_of(const std::vector<LockNode>& nodes, std::string_view own) {
  const auto mine = std::ranges::find(nodes, own, &LockNode::name);
  if (mine == nodes.end()) {
    return {};
  }
  Standing standing{.found = true};
  const auto is_reader = [](const LockNode& node) { return node.kind == NodeKind::reader; };
  const auto writer = std::find_if_not(nodes.begin(), mine, is_reader);
  standing.holds = mine == nodes.begin() || (is_reader(*mine) && writer == mine);
  if (standing.holds) {
    return standing;
  }
  // Those in front that do not hold yet: the first always does, and with it,
  // if it reads, all readers up to the first writer.
  const auto holders = is_reader(nodes.front()) ? writer : nodes.begin() + 1;
  standing.ahead = static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(mine - holders, 0));
  auto blocker = mine - 1;
  while (is_reader(*mine) && is_reader(*blocker)) {
    --blocker;
  }
  standing.blocker = blocker->name;
  return standing;
}

std::string LockNote::text() const {
  std::string text{kKinds.at(static_cast<std::size_t>(kind))};
  if (kind == Kind::semaphore) {
    text += std::to_string(limit);
  }
  for (const std::string& guid : revoked) {
    text.append("\n").append(kRevoked).append(guid);
  }
  return text;
}

LockNote LockNote::parse(std::string_view text) {
  LockNote note;
  const std::string_view head = next_line(text);
  for (std::size_t i = 1; i < kKinds.size(); ++i) {
    if (head.starts_with(kKinds.at(i))) {
      note.kind = static_cast<Kind>(i);
    }
  }
  if (note.kind == Kind::semaphore) {
    note.limit = number_in<std::uint32_t>(head.substr(kKinds.back().size()));
  }
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.starts_with(kRevoked)) {
      note.revoked.emplace_back(line.substr(kRevoked.size()));
    }
  }
  return note;
}

bool LockNote::is_revoked(std::string_view guid) const {
  return std::ranges::find(revoked, guid) != revoked.end();
}

std::string PartyNote::text() const {
  std::string text{revoked ? kRevokedNote : kNote};
  text.append(line_safe(party.label)).append("\n").append(line_safe(party.host)).append("\n");
  text.append(std::to_string(party.pid)).append("\n").append(std::to_string(permits)).append("\n");
  return text.append(std::to_string(token)).append("\n").append(guid).append("\n");
}

std::optional<PartyNote> PartyNote::parse(std::string_view text) {
  PartyNote note;
  note.revoked = text.starts_with(kRevokedNote);
  if (!note.revoked && !text.starts_with(kNote)) {
    return std::nullopt;
  }
  next_line(text);
  note.party.label = next_line(text);
  note.party.host = next_line(text);
  note.party.pid = number_in<std::int64_t>(next_line(text));
  note.permits = number_in<std::uint32_t>(next_line(text));
  note.token = number_in<std::uint64_t>(next_line(text));
  note.guid = next_line(text);
  return note;
}

}  // namespace holdfast::engines
