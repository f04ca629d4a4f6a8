#include "engines/mysql/mysql_lock.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "core/lock_record_codec.h"

namespace holdfast::engines {
namespace {

constexpr std::size_t kMaxText = 64;

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// The smallest and largest second byte after this first one; others follow
// freely. Leaves out what is overlong, a surrogate, or too large.
std::pair<unsigned, unsigned> second_bytes(unsigned lead) {
  switch (lead) {
    case 0xE0:
      return {0xA0, 0xBF};
    case 0xED:
      return {0x80, 0x9F};
    case 0xF0:
      return {0x90, 0xBF};
    case 0xF4:
      return {0x80, 0x8F};
    default:
      return {0x80, 0xBF};
  }
}

// How long a character that is fit to be shown begins here; 0 if none does.
std::size_t character_at(std::string_view text) {
  const unsigned lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) {
    return lead < 0x20 || lead == 0x7F ? 0 : 1;
  }
  const std::size_t length = lead < 0xC2   ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) {
    return 0;
  }
  const auto [least, most] = second_bytes(lead);
  const unsigned second = static_cast<unsigned char>(text[1]);
  const bool good =
      second >= least && second <= most &&
      std::all_of(text.begin() + 2, text.begin() + static_cast<std::ptrdiff_t>(length),
                  is_continuation);
  return good ? length : 0;
}

std::string clipped(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const std::size_t length = character_at(text);
    const std::string_view piece = length == 0 ? "?" : text.substr(0, length);
    if (clean.size() + piece.size() > kMaxText) {
      break;
    }
    clean += piece;
    text.remove_prefix(std::max(length, std::size_t{1}));
  }
  return clean;
}

std::string words(const Party& party) {
  return party.label + " on " + party.host + " (pid " + std::to_string(party.pid) + ")";
}

std::string words(const core::Shape& shape) {
  switch (shape.mode) {
    case Mode::exclusive:
      return "";
    case Mode::shared:
      return ", shared";
    case Mode::permits:
      return ", " + std::to_string(shape.permits) + " of " + std::to_string(shape.limit);
  }
  return "";
}

// --- the rest: the record and the parties, in the order of the record; then
// perhaps that it is fenced

constexpr std::uint64_t kFenced = 'f';

void put(std::string& into, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    into += static_cast<char>(number >> (8U * static_cast<unsigned>(i)));
  }
}

void put(std::string& into, const Party& party) {
  for (const std::string& text : {party.label, party.host}) {
    put(into, text.size(), 1);
    into += text;
  }
  put(into, static_cast<std::uint64_t>(party.pid), 8);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_{bytes} {}

  std::string_view take(std::size_t count) {
    if (count > left_.size()) {
      good_ = false;
      return {};
    }
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string_view taken = take(bytes);
    for (std::size_t i = taken.size(); i > 0; --i) {
      value = value << 8U | static_cast<unsigned char>(taken[i - 1]);
    }
    return value;
  }
  Party party() {
    Party read;
    read.label = take(number(1));
    read.host = take(number(1));
    read.pid = static_cast<std::int64_t>(number(8));
    return read;
  }
  bool good() const { return good_; }
  bool at_end() const { return good_ && left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

std::string rest_of(const LockEntry& entry) {
  std::string record;
  core::encode(entry.record, record);
  std::string rest;
  put(rest, record.size(), 4);
  rest += record;
  for (const core::Holder& holder : entry.record.holders()) {
    put(rest, entry.party_of(holder.session));
  }
  for (const core::Waiter& waiter : entry.record.queue()) {
    put(rest, entry.party_of(waiter.session));
  }
  if (entry.fenced) {
    put(rest, kFenced, 1);
  }
  return rest;
}

Error damaged() {
  return {ErrorCode::unavailable, "a row of the lock table is damaged: its rest cannot be read",
          std::nullopt};
}

Result<LockEntry> read_rest(std::string_view bytes) {
  Reader reader{bytes};
  const auto size = reader.number(4);
  const std::string_view encoded = reader.take(size);
  if (!reader.good()) {
    return tl::unexpected{damaged()};
  }
  auto record = core::decode(encoded);
  if (!record) {
    return tl::unexpected{damaged()};
  }
  LockEntry entry{.record = std::move(*record), .parties = {}};
  for (const core::Holder& holder : entry.record.holders()) {
    entry.parties[holder.session] = reader.party();
  }
  for (const core::Waiter& waiter : entry.record.queue()) {
    entry.parties[waiter.session] = reader.party();
  }
  if (!reader.at_end()) {
    entry.fenced = reader.number(1) == kFenced;
    if (!entry.fenced || !reader.at_end()) {
      return tl::unexpected{damaged()};
    }
  }
  return entry;
}

bool is_plain(const core::LockRecord& record) {
  if (!record.queue().empty() || record.limit() != 0 || record.holders().size() > 1) {
    return false;
  }
  if (record.holders().empty()) {
    return true;
  }
  const core::Holder& holder = record.holders().front();
  return holder.shape == core::Shape{} && !holder.revoked &&
         holder.ttl == in_microseconds(holder.ttl) &&
         holder.token + core::kTokenStride - 1 == record.last_token();
}

std::string queue_words(const LockEntry& entry) {
  constexpr std::size_t kShown = 20;
  std::string text;
  std::size_t shown = 0;
  for (const core::Waiter& waiter : entry.record.queue()) {
    if (++shown > kShown) {
      return text + "; ...";
    }
    text +=
        (text.empty() ? "" : "; ") + words(entry.party_of(waiter.session)) + words(waiter.shape);
  }
  return text;
}

}  // namespace

Party LockEntry::party_of(const core::SessionId& session) const {
  const auto found = parties.find(session);
  return found == parties.end() ? Party{} : found->second;
}

core::Duration in_microseconds(core::Duration time) {
  return std::chrono::floor<std::chrono::microseconds>(time);
}

Party clipped(const Party& party) {
  return {.label = clipped(party.label), .host = clipped(party.host), .pid = party.pid};
}

std::string bytes_of(const Party& party) {
  std::string bytes;
  put(bytes, party);
  return bytes;
}

LockRow row_of(const LockEntry& entry) {
  const core::LockRecord& record = entry.record;
  LockRow row;
  row.last_token = record.last_token();
  row.waiting = static_cast<std::uint32_t>(record.queue().size());
  row.queue = queue_words(entry);
  if (!record.holders().empty()) {
    const core::Holder& first = record.holders().front();
    row.holder = entry.party_of(first.session);
    row.since = first.since;
    row.ttl = first.ttl;
  }
  for (const core::Holder& holder : record.holders()) {
    row.until = std::max(row.until, holder.expires);
  }
  if (!is_plain(record) || entry.fenced) {
    row.rest = rest_of(entry);
  } else if (!record.holders().empty()) {
    row.request = record.holders().front().id;
    row.session = record.holders().front().session;
  }
  return row;
}

Result<LockEntry> entry_of(const LockRow& row) {
  if (!row.rest.empty()) {
    return read_rest(row.rest);
  }
  LockEntry entry;
  core::LockRecord::Parts parts;
  parts.last_token = row.last_token;
  if (!row.request.is_zero()) {
    if (row.last_token < core::kTokenStride) {
      return tl::unexpected{damaged()};
    }
    parts.holders.push_back({.id = row.request,
                             .session = row.session,
                             .shape = {},
                             .token = row.last_token - (core::kTokenStride - 1),
                             .ttl = row.ttl,
                             .since = row.since,
                             .expires = row.until});
    entry.parties[row.session] = row.holder;
  }
  entry.record = core::LockRecord::from_parts(std::move(parts));
  return entry;
}

}  // namespace holdfast::engines
