#include "engines/redis/redis_wire.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <variant>

namespace holdfast::engines {
namespace {

using std::chrono::microseconds;

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

template <typename Number>
void append_number(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof bytes);
}

template <typename Number>
Number take_number(std::string_view& bytes) {
  Number number{};
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

double to_micros(core::Duration time) {
  return static_cast<double>(
      std::max(std::chrono::floor<microseconds>(time), microseconds{1}).count());
}

// Also if it is no number at all.
double within(double value, double least, double most) {
  return std::isnan(value) ? 0 : std::clamp(value, least, most);
}

core::Duration from_micros(double time) {
  // Where there is no end, Redis says so with its largest number.
  constexpr double kLongest = 9.0e15;
  return microseconds{static_cast<std::int64_t>(within(time, -kLongest, kLongest))};
}

void append_request(std::string& out, const core::Acquire& acquire) {
  out += bytes_of(acquire.id);
  out += bytes_of(acquire.session);
  append_number(out, static_cast<std::uint8_t>(acquire.shape.mode));
  append_number(out, acquire.shape.permits);
  append_number(out, acquire.shape.limit);
  append_number(out, to_micros(acquire.ttl));
  append_number(out, to_micros(acquire.window));
  append_number(out, static_cast<std::uint8_t>((acquire.queue ? 1 : 0) + (acquire.barge ? 2 : 0)));
}

struct Packer {
  std::string& out;

  void operator()(const core::Acquire& acquire) const {
    out.push_back('A');
    append_request(out, acquire);
  }
  void operator()(const core::Renew& renew) const { with_id('N', renew.id); }
  void operator()(const core::Poll& poll) const { with_id(poll.heartbeat ? 'H' : 'P', poll.id); }
  void operator()(const core::Release& release) const { with_id('R', release.id); }
  void operator()(const core::Requeue& requeue) const {
    with_id('Q', requeue.id);
    append_request(out, requeue.next);
  }
  void operator()(const core::Revoke& revoke) const { out += revoke.now ? "V!" : "V"; }
  void operator()(const core::Resize& resize) const { out += 'Z' + std::to_string(resize.limit); }
  void operator()(const core::Upgrade& upgrade) const {
    with_id('U', upgrade.id);
    out.push_back(upgrade.queue ? '1' : '0');
  }
  void operator()(const core::Downgrade& downgrade) const { with_id('D', downgrade.id); }
  void operator()(const core::Transfer& transfer) const {
    with_id('T', transfer.id);
    append_request(out, transfer.next);
  }

 private:
  void with_id(char letter, const core::RequestId& id) const {
    out.push_back(letter);
    out += bytes_of(id);
  }
};

}  // namespace

std::string_view bytes_of(const base::Id& id) {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

base::Id id_from(std::string_view bytes) {
  base::Id id;
  if (bytes.size() == id.bytes.size()) {
    std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
  }
  return id;
}

void append_packed(std::string& out, const core::Operation& operation) {
  std::visit(Packer{out}, operation);
}

void append_packed_number(std::string& out, double number) {
  append_number(out, number);
}

core::Outcome unpack_outcome(std::string_view bytes) {
  core::Outcome outcome;
  outcome.status = static_cast<core::Status>(std::min<std::uint8_t>(
      take_number<std::uint8_t>(bytes), static_cast<std::uint8_t>(core::Status::failed)));
  outcome.gave_back = take_number<std::uint8_t>(bytes) != 0;
  outcome.ahead = take_number<std::uint32_t>(bytes);
  outcome.count = take_number<std::uint32_t>(bytes);
  outcome.token = static_cast<std::uint64_t>(
      within(take_number<double>(bytes), 0, static_cast<double>(core::kMaxToken)));
  outcome.lease_for = from_micros(take_number<double>(bytes));
  outcome.look_again = from_micros(take_number<double>(bytes));
  return outcome;
}

std::optional<engine::Ring> unpack_ring(std::string_view bytes) {
  engine::Ring ring;
  if (bytes.size() <= ring.id.bytes.size()) {
    return std::nullopt;
  }
  ring.id = id_from(bytes.substr(0, ring.id.bytes.size()));
  bytes.remove_prefix(ring.id.bytes.size());
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), ring.token);
  if (error != std::errc{} || end != bytes.data() + bytes.size()) {
    return std::nullopt;
  }
  return ring;
}

std::string pack_party(const Party& party) {
  std::string text = std::to_string(party.pid);
  text.push_back('\0');
  text += party.host.substr(0, party.host.find('\0'));
  text.push_back('\0');
  text += party.label;
  return text;
}

Party unpack_party(std::string_view text) {
  Party party;
  const std::size_t pid = text.find('\0');
  const std::size_t host = pid == std::string_view::npos ? pid : text.find('\0', pid + 1);
  if (host == std::string_view::npos) {
    return party;
  }
  std::from_chars(text.data(), text.data() + pid, party.pid);
  party.host = text.substr(pid + 1, host - pid - 1);
  party.label = text.substr(host + 1);
  return party;
}

}  // namespace holdfast::engines
