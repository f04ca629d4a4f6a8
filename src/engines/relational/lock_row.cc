#include "engines/relational/lock_row.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/lock_record_codec.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::relational {
namespace {

// The queue as people see it ends somewhere.
constexpr std::size_t kShownWaiters = 100;

bool is_plain(const core::LockRecord& record) {
  if (!record.queue().empty() || record.holders().size() > 1) {
    return false;
  }
  return record.holders().empty() || (record.holders().front().shape.mode == Mode::exclusive &&
                                      !record.holders().front().revoked);
}

Party party_of(const Parties& parties, const core::SessionId& session) {
  const auto found = parties.find(session);
  return found == parties.end() ? Party{} : found->second;
}

std::string shown(const Party& party, const core::Shape& shape) {
  std::string text = escaped(party.label) + " on " + escaped(party.host) + ", process " +
                     std::to_string(party.pid) + ", " + std::string{to_string(shape.mode)};
  if (shape.mode == Mode::permits) {
    text += " " + std::to_string(shape.permits) + " of " + std::to_string(shape.limit);
  }
  return text;
}

std::optional<std::string> shown_queue(const core::LockRecord& record, const Parties& parties) {
  if (record.queue().empty()) {
    return std::nullopt;
  }
  std::string text;
  std::size_t place = 0;
  for (const core::Waiter& waiter : record.queue()) {
    if (place == kShownWaiters) {
      text += "\n...";
      break;
    }
    text += (place++ == 0 ? "" : "\n") + shown(party_of(parties, waiter.session), waiter.shape);
  }
  return text;
}

std::optional<core::SessionId> read_id(std::string_view hex) {
  core::SessionId id;
  if (hex.size() != 2 * id.bytes.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const char* digits = hex.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, id.bytes.at(i), 16).ptr != digits + 2) {
      return std::nullopt;
    }
  }
  return id;
}

}  // namespace

// Tabs and line ends do not survive escaped(), so they can separate.
std::string written(const Parties& parties) {
  std::string text;
  for (const auto& [session, party] : parties) {
    text += session.hex() + '\t' + escaped(party.label) + '\t' + escaped(party.host) + '\t' +
            std::to_string(party.pid) + '\n';
  }
  return text;
}

Parties read_parties(const std::string& text) {
  Parties parties;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in{line};
    std::string hex;
    std::string label;
    std::string host;
    std::int64_t pid = 0;
    std::getline(in, hex, '\t');
    std::getline(in, label, '\t');
    std::getline(in, host, '\t');
    in >> pid;
    if (const auto session = read_id(hex)) {
      parties[*session] = {.label = unescaped(label), .host = unescaped(host), .pid = pid};
    }
  }
  return parties;
}

Result<core::LockRecord> LockRow::to_record() const {
  if (record) {
    return core::decode(*record);
  }
  core::LockRecord::Parts parts;
  parts.last_token = last_token;
  if (request) {
    if (!session || !token || !ttl || !since || !until) {
      return fail(ErrorCode::unavailable, "the stored lock is damaged: its holder is incomplete");
    }
    parts.holders.push_back({.id = *request,
                             .session = *session,
                             .shape = {},
                             .token = *token,
                             .ttl = *ttl,
                             .since = *since,
                             .expires = *until});
  }
  return core::LockRecord::from_parts(std::move(parts));
}

Parties LockRow::known_parties() const {
  Parties known = parties ? read_parties(*parties) : Parties{};
  if (session && holder) {
    known.try_emplace(*session, *holder);
  }
  return known;
}

LockRow LockRow::from(const core::LockRecord& record, const Parties& parties) {
  LockRow row;
  row.last_token = record.last_token();
  const bool plain = is_plain(record);
  if (!record.holders().empty()) {
    const core::Holder& first = record.holders().front();
    row.request = plain ? std::optional{first.id} : std::nullopt;
    row.session = first.session;
    row.token = first.token;
    row.ttl = first.ttl;
    row.holder = party_of(parties, first.session);
    row.since = first.since;
    row.until = first.expires;
    for (const core::Holder& holder : record.holders()) {
      row.until = std::max(*row.until, holder.expires);
    }
  }
  if (plain) {
    return row;
  }
  core::encode(record, row.record.emplace());
  Parties mentioned;
  for (const core::Holder& holder : record.holders()) {
    mentioned[holder.session] = party_of(parties, holder.session);
  }
  for (const core::Waiter& waiter : record.queue()) {
    mentioned[waiter.session] = party_of(parties, waiter.session);
  }
  row.parties = written(mentioned);
  row.idle_at = record.idle_from();
  row.waiting = static_cast<std::int32_t>(record.queue().size());
  row.queue = shown_queue(record, parties);
  return row;
}

}  // namespace holdfast::engines::relational
