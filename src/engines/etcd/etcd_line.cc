#include "engines/etcd/etcd_line.h"

#include <algorithm>
#include <span>
#include <utility>

namespace holdfast::engines {
namespace {

constexpr unsigned kTokenBits = 12;
constexpr unsigned kUpperHalf = 32;  // of the blocks of a revision
static_assert((2 * kUpperHalf * core::kTokenStride) >> kTokenBits == 1);

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
  // What lets a reader in may also be that the writer in front reads from now on.
  standing.next = mine == line.data() + 1 && mine->note.shape.mode == Mode::exclusive;
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

EtcdUpgrade next_of_upgrade(const std::vector<Entrant>& line, const Entrant& mine,
                            std::int64_t revision, bool queue) {
  EtcdUpgrade next;
  std::int64_t last = 0;
  bool another = false;  // waits for the same
  for (const Entrant& each : line) {
    if (each.holds) {
      last = each.key.create_revision;
      if (&each != &mine) {
        next.blocker = each.key.key;
        another = another || each.note.readers_until != 0;
      }
    }
  }
  const bool waits = mine.note.readers_until != 0;
  next.note = mine.note;
  if (!next.blocker.empty()) {
    const bool busy = another || !queue;
    const auto unless_noted = busy ? EtcdUpgrade::Step::busy : EtcdUpgrade::Step::wait;
    next.step = waits != busy ? unless_noted : EtcdUpgrade::Step::write;
    next.note.readers_until = busy ? 0 : last;
    return next;
  }
  const auto token = etcd_token_alone(line, revision);
  next.step = token ? EtcdUpgrade::Step::write : EtcdUpgrade::Step::no_token;
  next.note.readers_until = 0;
  next.note.shape.mode = Mode::exclusive;
  next.note.token = token.value_or(0);
  return next;
}

}  // namespace holdfast::engines
