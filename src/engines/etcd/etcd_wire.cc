#include "engines/etcd/etcd_wire.h"

#include <utility>

namespace holdfast::engines {
namespace {

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kBytes = 2;

class Writer {
 public:
  Writer& number(std::uint64_t field, std::int64_t value) {
    if (value != 0) {
      varint(field << 3U | kVarint);
      varint(static_cast<std::uint64_t>(value));
    }
    return *this;
  }
  Writer& bytes(std::uint64_t field, std::string_view value) {
    return value.empty() ? *this : message(field, value);
  }
  Writer& message(std::uint64_t field, std::string_view value) {
    varint(field << 3U | kBytes);
    varint(value.size());
    text_.append(value);
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      text_.push_back(static_cast<char>(value | 0x80U));
      value >>= 7U;
    }
    text_.push_back(static_cast<char>(value));
  }

  std::string text_;
};

// One field after the other; fields of other types are skipped.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_{text} {}

  bool next() {
    if (text_.empty()) {
      return false;
    }
    const std::uint64_t tag = varint();
    field_ = tag >> 3U;
    number_ = 0;
    bytes_ = {};
    switch (tag & 7U) {
      case kVarint:
        number_ = varint();
        break;
      case 1:
        skip(8);
        break;
      case kBytes: {
        const std::uint64_t size = varint();
        bytes_ = text_.substr(0, size);
        skip(size);
        break;
      }
      case 5:
        skip(4);
        break;
      default:
        good_ = false;
    }
    return good_;
  }

  std::uint64_t field() const noexcept { return field_; }
  std::int64_t number() const noexcept { return static_cast<std::int64_t>(number_); }
  std::string_view bytes() const noexcept { return bytes_; }
  bool good() const noexcept { return good_; }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (text_.empty()) {
        good_ = false;
        return 0;
      }
      const auto byte = static_cast<unsigned char>(text_.front());
      text_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    good_ = false;
    return 0;
  }

  void skip(std::uint64_t count) {
    if (count > text_.size()) {
      good_ = false;
      count = text_.size();
    }
    text_.remove_prefix(count);
  }

  std::string_view text_;
  std::uint64_t field_ = 0;
  std::uint64_t number_ = 0;
  std::string_view bytes_;
  bool good_ = true;
};

// Calls `each(reader)` for every field; false if the bytes make no sense.
template <typename Each>
bool read_fields(std::string_view bytes, const Each& each) {
  Reader reader{bytes};
  while (reader.next()) {
    each(reader);
  }
  return reader.good();
}

struct Header {
  std::int64_t revision = 0;
  std::uint64_t term = 0;
};
Header decode_header(std::string_view bytes) {
  Header header;
  read_fields(bytes, [&](const Reader& field) {
    if (field.field() == 3) {
      header.revision = field.number();
    } else if (field.field() == 4) {
      header.term = static_cast<std::uint64_t>(field.number());
    }
  });
  return header;
}

EtcdKey decode_key(std::string_view bytes) {
  EtcdKey key;
  read_fields(bytes, [&](const Reader& field) {
    switch (field.field()) {
      case 1:
        key.key = field.bytes();
        break;
      case 2:
        key.create_revision = field.number();
        break;
      case 3:
        key.mod_revision = field.number();
        break;
      case 5:
        key.value = field.bytes();
        break;
      case 6:
        key.lease = field.number();
        break;
      default:
        break;
    }
  });
  return key;
}

std::string encode(const EtcdCompare& compare) {
  Writer out;
  out.number(1, static_cast<std::int64_t>(compare.is));
  out.number(2, static_cast<std::int64_t>(compare.target)).bytes(3, compare.key);
  // A zero is left out by the format, and means zero.
  out.number(static_cast<std::uint64_t>(compare.target) + 4, compare.revision);
  return out.bytes(64, compare.end).take();
}

std::string encode_put(const EtcdOperation& put) {
  Writer out;
  out.bytes(1, put.key).bytes(2, put.value).number(3, put.lease).number(6, put.keep_lease ? 1 : 0);
  return out.take();
}

std::string encode(const EtcdOperation& operation) {
  std::string body;
  switch (operation.what) {
    case EtcdOperation::What::range:
      body = encode_range(operation);
      break;
    case EtcdOperation::What::put:
      body = encode_put(operation);
      break;
    case EtcdOperation::What::remove:
      body = Writer{}.bytes(1, operation.key).bytes(2, operation.end).take();
      break;
  }
  return Writer{}.message(static_cast<std::uint64_t>(operation.what), body).take();
}

EtcdTransactionAnswer::Part decode_part(std::string_view bytes) {
  EtcdTransactionAnswer::Part part;
  read_fields(bytes, [&](const Reader& kind) {
    const bool is_range = kind.field() == 1;
    const bool is_remove = kind.field() == 3;
    read_fields(kind.bytes(), [&](const Reader& field) {
      if (is_range && field.field() == 2) {
        part.keys.push_back(decode_key(field.bytes()));
      } else if (is_remove && field.field() == 2) {
        part.deleted = field.number();
      }
    });
  });
  return part;
}

}  // namespace

std::string etcd_prefix_end(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') {
    prefix.pop_back();
  }
  if (prefix.empty()) {
    return std::string(1, '\0');  // to the end of all keys
  }
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

std::string encode_range(const EtcdOperation& range) {
  constexpr std::int64_t kAscending = 1;
  constexpr std::int64_t kByCreation = 2;
  Writer out;
  out.bytes(1, range.key).bytes(2, range.end);
  if (!range.end.empty()) {
    out.number(5, kAscending).number(6, kByCreation);
  }
  return out.number(8, range.keys_only ? 1 : 0).take();
}

std::string encode(const EtcdTransaction& transaction) {
  Writer out;
  for (const EtcdCompare& each : transaction.compares) {
    out.message(1, encode(each));
  }
  for (const EtcdOperation& each : transaction.success) {
    out.message(2, encode(each));
  }
  for (const EtcdOperation& each : transaction.failure) {
    out.message(3, encode(each));
  }
  return out.take();
}

std::string encode_together(const std::vector<const EtcdTransaction*>& transactions) {
  constexpr std::uint64_t kTransaction = 4;
  Writer out;
  // Always true: so the server asks who we are, which what is within does not make it do.
  out.message(1, encode(EtcdCompare{.key = transactions.front()->compares.front().key,
                                    .is = EtcdCompare::Is::greater,
                                    .revision = -1}));
  for (const EtcdTransaction* each : transactions) {
    out.message(2, Writer{}.message(kTransaction, encode(*each)).take());
  }
  return out.take();
}

std::string encode_grant(std::int64_t seconds) {
  return Writer{}.number(1, seconds).take();
}

std::string encode_lease(std::int64_t lease) {
  return Writer{}.number(1, lease).take();
}

std::string encode_login(std::string_view user, std::string_view password) {
  return Writer{}.bytes(1, user).bytes(2, password).take();
}

std::string encode_watch(std::int64_t id, std::string_view key, EtcdEvents events) {
  Writer create;
  create.bytes(1, key);
  if (key.ends_with('/')) {
    create.bytes(2, etcd_prefix_end(std::string{key}));
  }
  if (events == EtcdEvents::ends) {
    create.message(5, std::string_view{"\0", 1});  // filters: no puts
  }
  return Writer{}.message(1, create.number(7, id).take()).take();
}

std::string encode_unwatch(std::int64_t id) {
  return Writer{}.message(2, Writer{}.number(1, id).take()).take();
}

std::optional<EtcdRange> decode_range(std::string_view bytes) {
  EtcdRange range;
  const bool good = read_fields(bytes, [&](const Reader& field) {
    if (field.field() == 1) {
      const Header header = decode_header(field.bytes());
      range.revision = header.revision;
      range.term = header.term;
    } else if (field.field() == 2) {
      range.keys.push_back(decode_key(field.bytes()));
    }
  });
  return good ? std::optional{std::move(range)} : std::nullopt;
}

std::optional<EtcdTransactionAnswer> decode_transaction(std::string_view bytes) {
  EtcdTransactionAnswer answer;
  const bool good = read_fields(bytes, [&](const Reader& field) {
    if (field.field() == 1) {
      answer.revision = decode_header(field.bytes()).revision;
    } else if (field.field() == 2) {
      answer.succeeded = field.number() != 0;
    } else if (field.field() == 3) {
      answer.parts.push_back(decode_part(field.bytes()));
    }
  });
  return good ? std::optional{std::move(answer)} : std::nullopt;
}

std::optional<std::vector<EtcdTransactionAnswer>> decode_together(std::string_view bytes) {
  constexpr std::uint64_t kTransaction = 4;
  std::vector<EtcdTransactionAnswer> answers;
  std::int64_t revision = 0;
  bool good = true;
  const bool whole = read_fields(bytes, [&](const Reader& field) {
    if (field.field() == 1) {
      revision = decode_header(field.bytes()).revision;
    } else if (field.field() == 3) {
      read_fields(field.bytes(), [&](const Reader& part) {
        if (part.field() == kTransaction) {
          auto answer = decode_transaction(part.bytes());
          good = good && answer;
          answers.push_back(answer ? *std::move(answer) : EtcdTransactionAnswer{});
        }
      });
    }
  });
  for (EtcdTransactionAnswer& each : answers) {
    each.revision = revision;  // it stands in the outer one alone
  }
  return good && whole ? std::optional{std::move(answers)} : std::nullopt;
}

std::optional<EtcdLease> decode_lease(std::string_view bytes) {
  EtcdLease lease;
  const bool good = read_fields(bytes, [&](const Reader& field) {
    if (field.field() == 1) {
      lease.term = decode_header(field.bytes()).term;
    } else if (field.field() == 2) {
      lease.id = field.number();
    } else if (field.field() == 3) {
      lease.ttl = field.number();
    } else if (field.field() == 4) {
      lease.granted = field.number();
    }
  });
  return good ? std::optional{lease} : std::nullopt;
}

std::optional<EtcdWatchNews> decode_watch(std::string_view bytes) {
  EtcdWatchNews news;
  const bool good = read_fields(bytes, [&](const Reader& field) {
    if (field.field() == 1) {
      news.revision = decode_header(field.bytes()).revision;
    } else if (field.field() == 2) {
      news.id = field.number();
    } else if (field.field() == 3) {
      news.created = field.number() != 0;
    } else if (field.field() == 4) {
      news.cancelled = field.number() != 0;
    } else if (field.field() == 11) {
      ++news.events;
      bool ended = false;
      EtcdKey key;
      read_fields(field.bytes(), [&](const Reader& event) {
        if (event.field() == 1) {
          ended = event.number() == 1;
        } else if (event.field() == 2) {
          key = decode_key(event.bytes());
        }
      });
      if (ended) {
        news.ended.push_back(std::move(key));
      }
    }
  });
  return good ? std::optional{news} : std::nullopt;
}

std::optional<std::string> decode_token(std::string_view bytes) {
  std::optional<std::string> token;
  read_fields(bytes, [&](const Reader& field) {
    if (field.field() == 2) {
      token = field.bytes();
    }
  });
  return token;
}

std::optional<EtcdStatus> decode_status(std::string_view bytes) {
  EtcdStatus status;
  const bool good = read_fields(bytes, [&](const Reader& field) {
    if (field.field() == 1) {
      read_fields(field.bytes(), [&](const Reader& header) {
        if (header.field() == 2) {
          status.member = static_cast<std::uint64_t>(header.number());
        }
      });
    } else if (field.field() == 2) {
      status.version = field.bytes();
    } else if (field.field() == 4) {
      status.leader = static_cast<std::uint64_t>(field.number());
    }
  });
  return good ? std::optional{std::move(status)} : std::nullopt;
}

}  // namespace holdfast::engines
