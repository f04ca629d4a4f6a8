#include "core/lock_record_codec.h"

#include <algorithm>
#include <concepts>
#include <type_traits>
#include <utility>

namespace holdfast::core {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kModeBits = 0x03;
constexpr std::uint8_t kRevokedBit = 0x04;
constexpr std::uint8_t kUpgradingBit = 0x08;
constexpr std::size_t kHeaderBytes = 1 + 4 + 8 + 4 + 4;
constexpr std::size_t kHolderBytes = 16 + 16 + 1 + 4 + 8 + 3 * 8;
constexpr std::size_t kWaiterBytes = 16 + 16 + 1 + 4 + 4 * 8;
// Far beyond any uptime, and small enough that sums cannot overflow.
constexpr Time kLatest{Duration{std::int64_t{1} << 62U}};

class Writer {
 public:
  explicit Writer(std::string& out) : out_{out} {}

  template <std::unsigned_integral T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      out_.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> (8 * i))));
    }
  }
  void put(Duration value) { put(static_cast<std::uint64_t>(value.count())); }
  void put(Time value) { put(value.time_since_epoch()); }
  void put(const base::Id& id) {
    out_.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
  }

 private:
  std::string& out_;
};

// The caller has checked that the bytes are there.
class Reader {
 public:
  explicit Reader(std::string_view in) : in_{in} {}

  template <std::unsigned_integral T>
  void get(T& value) {
    std::uint64_t wide = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) {
      wide |= std::uint64_t{static_cast<std::uint8_t>(in_[i])} << (8 * i);
    }
    in_.remove_prefix(sizeof value);
    value = static_cast<T>(wide);
  }
  void get(Duration& value) {
    std::uint64_t count = 0;
    get(count);
    value = Duration{static_cast<std::int64_t>(count)};
  }
  void get(Time& value) {
    Duration since_boot{};
    get(since_boot);
    value = Time{since_boot};
  }
  void get(base::Id& id) {
    std::copy_n(in_.begin(), id.bytes.size(), id.bytes.begin());
    in_.remove_prefix(id.bytes.size());
  }

 private:
  std::string_view in_;
};

bool sane(Duration lasting) {
  return lasting > Duration::zero() && lasting <= kMaxTtl;
}

bool sane(Time since, Time expires) {
  return since >= Time{} && since <= kLatest && expires >= Time{} && expires <= kLatest;
}

bool sane(const Shape& shape) {
  if (shape.mode == Mode::permits) {
    return shape.limit > 0 && shape.permits > 0 && shape.permits <= kMaxPermits;
  }
  return shape.limit == 0 && shape.permits == 1;
}

bool sane(const Holder& holder, std::uint64_t last_token) {
  return sane(holder.shape) && sane(holder.ttl) && sane(holder.since, holder.expires) &&
         holder.token > 0 && holder.token <= last_token &&
         last_token - holder.token >= kTokenStride - 1;
}

// One reader at most waits to be the writer, and none while the lock is revoked.
bool sane_upgrade(const std::vector<Holder>& holders) {
  const auto upgrading = std::count_if(holders.begin(), holders.end(),
                                       [](const Holder& holder) { return holder.upgrading; });
  const bool revoked = std::any_of(holders.begin(), holders.end(),
                                   [](const Holder& holder) { return holder.revoked; });
  return upgrading == 0 ||
         (upgrading == 1 && !revoked && holders.front().shape.mode == Mode::shared);
}

bool sane(const Waiter& waiter) {
  return sane(waiter.shape) && waiter.shape.permits <= std::max(waiter.shape.limit, 1U) &&
         sane(waiter.ttl) && sane(waiter.window) && sane(waiter.since, waiter.expires);
}

bool one_kind(const std::vector<Holder>& holders) {
  return holders.empty() || std::all_of(holders.begin(), holders.end(), [&](const Holder& holder) {
           return holder.shape.mode == holders.front().shape.mode &&
                  (holder.shape.mode != Mode::exclusive || holders.size() == 1);
         });
}

bool read_mode(std::uint8_t flags, std::uint8_t others, Shape& shape) {
  const std::uint8_t mode = flags & kModeBits;
  shape.mode = static_cast<Mode>(mode);
  return mode <= static_cast<std::uint8_t>(Mode::permits) && (flags & ~(kModeBits | others)) == 0;
}

void write(Writer& out, const Holder& holder) {
  out.put(holder.id);
  out.put(holder.session);
  const int bits = (holder.revoked ? kRevokedBit : 0) | (holder.upgrading ? kUpgradingBit : 0);
  out.put(static_cast<std::uint8_t>(static_cast<int>(holder.shape.mode) | bits));
  out.put(holder.shape.permits);
  out.put(holder.token);
  out.put(holder.ttl);
  out.put(holder.since);
  out.put(holder.expires);
}

bool read(Reader& in, const LockRecord::Parts& parts, Holder& holder) {
  std::uint8_t flags = 0;
  in.get(holder.id);
  in.get(holder.session);
  in.get(flags);
  in.get(holder.shape.permits);
  in.get(holder.token);
  in.get(holder.ttl);
  in.get(holder.since);
  in.get(holder.expires);
  holder.shape.limit = parts.limit;
  holder.revoked = (flags & kRevokedBit) != 0;
  holder.upgrading = (flags & kUpgradingBit) != 0;
  return read_mode(flags, kRevokedBit | kUpgradingBit, holder.shape) &&
         sane(holder, parts.last_token);
}

void write(Writer& out, const Waiter& waiter) {
  out.put(waiter.id);
  out.put(waiter.session);
  out.put(static_cast<std::uint8_t>(waiter.shape.mode));
  out.put(waiter.shape.permits);
  out.put(waiter.ttl);
  out.put(waiter.window);
  out.put(waiter.since);
  out.put(waiter.expires);
}

bool read(Reader& in, const LockRecord::Parts& parts, Waiter& waiter) {
  std::uint8_t flags = 0;
  in.get(waiter.id);
  in.get(waiter.session);
  in.get(flags);
  in.get(waiter.shape.permits);
  in.get(waiter.ttl);
  in.get(waiter.window);
  in.get(waiter.since);
  in.get(waiter.expires);
  waiter.shape.limit = parts.limit;
  return read_mode(flags, 0, waiter.shape) && sane(waiter);
}

tl::unexpected<Error> damaged(const char* what) {
  return fail(ErrorCode::unavailable, std::string{"the stored lock is damaged: "} + what);
}

}  // namespace

void encode(const LockRecord& record, std::string& into) {
  into.clear();
  into.reserve(kHeaderBytes + record.holders().size() * kHolderBytes +
               record.queue().size() * kWaiterBytes);
  Writer out{into};
  out.put(kVersion);
  out.put(record.limit());
  out.put(record.last_token());
  out.put(static_cast<std::uint32_t>(record.holders().size()));
  out.put(static_cast<std::uint32_t>(record.queue().size()));
  for (const Holder& holder : record.holders()) {
    write(out, holder);
  }
  for (const Waiter& waiter : record.queue()) {
    write(out, waiter);
  }
}

Result<LockRecord> decode(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) {
    return damaged("cut short");
  }
  Reader in{bytes};
  std::uint8_t version = 0;
  std::uint32_t holders = 0;
  std::uint32_t waiters = 0;
  LockRecord::Parts parts;
  in.get(version);
  if (version != kVersion) {
    return fail(ErrorCode::unavailable, "the stored lock was written by another version (" +
                                            std::to_string(version) + ") of holdfast");
  }
  in.get(parts.limit);
  in.get(parts.last_token);
  in.get(holders);
  in.get(waiters);
  if (bytes.size() != kHeaderBytes + holders * kHolderBytes + waiters * kWaiterBytes) {
    return damaged("its length is wrong");
  }
  if (parts.limit > kMaxPermits || parts.last_token > kMaxToken ||
      (holders + waiters == 0 && parts.limit != 0)) {
    return damaged("its header is out of range");
  }
  parts.holders.resize(holders);
  for (Holder& holder : parts.holders) {
    if (!read(in, parts, holder)) {
      return damaged("a holder is out of range");
    }
  }
  if (!one_kind(parts.holders) || !sane_upgrade(parts.holders)) {
    return damaged("its holders exclude each other");
  }
  parts.queue.resize(waiters);
  for (Waiter& waiter : parts.queue) {
    if (!read(in, parts, waiter)) {
      return damaged("a waiter is out of range");
    }
  }
  return LockRecord::from_parts(std::move(parts));
}

}  // namespace holdfast::core
