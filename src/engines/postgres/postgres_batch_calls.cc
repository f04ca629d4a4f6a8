// What a batch says to the server.
#include <utility>

#include "engines/postgres/postgres_batch.h"
#include "engines/postgres/postgres_next.h"
#include "engines/relational/odd_bytes.h"

namespace holdfast::engines::postgres {

using relational::escaped;

Call Batch::exchange_call(const Entries& entries) const {
  const bool release_first = entries.front()->from == Way::release;
  const Entry& given = *entries[release_first ? 0 : 1];
  const Entry& taken = *entries[release_first ? 1 : 0];
  if (entries.size() == 2 && given.from == Way::release && taken.from == Way::take &&
      session_.has_our_settings()) {
    const auto& release = std::get<core::Release>(commands_[given.commands.front()].operation);
    const auto& acquire = std::get<core::Acquire>(commands_[taken.commands.front()].operation);
    const Party& party = shared_.client.party;
    return {.sql = &shared_.sql.swap,
            .values = {shared_.test_time(), given.key, binary(release.id), taken.key,
                       binary(acquire.id), binary(acquire.session), binary(acquire.ttl),
                       escaped(party.label), escaped(party.host), binary(party.pid)}};
  }
  ArrayOf names{Element::text};
  ArrayOf kinds{Element::int4};
  ArrayOf requests{Element::uuid};
  ArrayOf sessions{Element::uuid};
  ArrayOf ttls{Element::interval};
  for (const Entry* entry : entries) {
    const core::Operation& operation = commands_[entry->commands.front()].operation;
    const auto* acquire = std::get_if<core::Acquire>(&operation);
    const auto* release = std::get_if<core::Release>(&operation);
    names.add(entry->key);
    kinds.add(std::int32_t{acquire != nullptr ? 2 : release != nullptr ? 0 : 1});
    requests.add(acquire != nullptr   ? acquire->id
                 : release != nullptr ? release->id
                                      : std::get<core::Renew>(operation).id);
    sessions.add(acquire != nullptr ? acquire->session : core::SessionId{});
    ttls.add(acquire != nullptr ? acquire->ttl : core::Duration{});
  }
  const Party& party = shared_.client.party;
  return {
      .sql = session_.has_our_settings() ? &shared_.sql.exchange : &shared_.sql.exchange_in_order,
      .values = {shared_.test_time(), names.bytes(), kinds.bytes(), requests.bytes(),
                 sessions.bytes(), ttls.bytes(), escaped(party.label), escaped(party.host),
                 binary(party.pid)}};
}

Call Batch::take_call(const Entries& entries) const {
  ArrayOf names{Element::text};
  ArrayOf requests{Element::uuid};
  ArrayOf sessions{Element::uuid};
  ArrayOf ttls{Element::interval};
  for (const Entry* entry : entries) {
    const auto& acquire = std::get<core::Acquire>(commands_[entry->commands.front()].operation);
    names.add(entry->key);
    requests.add(acquire.id);
    sessions.add(acquire.session);
    ttls.add(acquire.ttl);
  }
  const Party& party = shared_.client.party;
  return {.sql = &shared_.sql.take,
          .values = {shared_.test_time(), names.bytes(), requests.bytes(), sessions.bytes(),
                     ttls.bytes(), escaped(party.label), escaped(party.host), binary(party.pid)}};
}

Call Batch::change_call(const Entries& entries, const std::string& one,
                        const std::string& many) const {
  const auto id_of = [&](const Entry* entry) {
    const core::Operation& operation = commands_[entry->commands.front()].operation;
    const auto* release = std::get_if<core::Release>(&operation);
    return release != nullptr ? release->id : std::get<core::Renew>(operation).id;
  };
  if (entries.size() == 1) {
    return {.sql = &one,
            .values = {shared_.test_time(), entries.front()->key, binary(id_of(entries.front()))}};
  }
  ArrayOf names{Element::text};
  ArrayOf requests{Element::uuid};
  for (const Entry* entry : entries) {
    names.add(entry->key);
    requests.add(id_of(entry));
  }
  return {.sql = &many, .values = {shared_.test_time(), names.bytes(), requests.bytes()}};
}

Call Batch::requeue_call(const Entry& entry) const {
  const auto& requeue = std::get<core::Requeue>(commands_[entry.commands.front()].operation);
  const Party& party = shared_.client.party;
  return {.sql = &shared_.sql.requeue_one,
          .values = {shared_.test_time(), entry.key, binary(requeue.id), binary(requeue.next.id),
                     binary(requeue.next.session), binary(requeue.next.ttl), escaped(party.label),
                     escaped(party.host), binary(party.pid)}};
}

Call Batch::read_call(const Entries& entries) const {
  ArrayOf names{Element::text};
  for (const Entry* entry : entries) {
    names.add(entry->key);
  }
  return {.sql = &shared_.sql.read, .values = {shared_.test_time(), names.bytes()}};
}

Call Batch::write_call(const Entries& entries) const {
  WrittenRows rows;
  bool fenced = false;
  for (const Entry* entry : entries) {
    relational::Parties known = entry->stored->row.known_parties();
    known[shared_.client.session] = shared_.client.party;
    if (entry->guarded) {
      known[core::SessionId{}] = {.label = "(a guarded transaction)", .host = "", .pid = 0};
    }
    for (const std::size_t place : entry->commands) {
      if (const auto* acquire = std::get_if<core::Acquire>(&commands_[place].operation)) {
        known.try_emplace(acquire->session, shared_.client.party);
      }
    }
    const auto fence = new_fence(*entry);
    fenced = fenced || fence;
    core::LockRecord after = entry->after;
    const std::string next = prepare_next(after, known);
    relational::LockRow row = relational::LockRow::from(after, known);
    if (row.parties) {
      row.parties = next + *row.parties;
    }
    rows.add(entry->key, *entry->stored, row, fence);
    for (const core::Wake& wake : entry->wakes) {
      rows.ring(entry->key, Doorbell::channel_of(wake.session), Doorbell::payload_of(wake));
    }
  }
  return {.sql = fenced ? &shared_.sql.write_fenced : &shared_.sql.write, .values = rows.values()};
}

}  // namespace holdfast::engines::postgres
