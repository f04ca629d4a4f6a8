#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engines/redis/redis_connector.h"
#include "engines/redlock/redlock_options.h"

namespace holdfast::engines {

// What the script says, without what was refused.
std::string_view redlock_text(const RespValue& reply);

// One of the servers. Calls are answered in order, each at its own time or
// never; nobody waits for a slow one. Not thread-safe.
class RedlockNode {
 public:
  RedlockNode(const RedlockOptions& options, std::size_t which, std::shared_ptr<RedisTls> tls);

  // What was asked under `tag`; nullopt: the node will not say.
  struct Answer {
    std::uint64_t tag = 0;
    base::Time asked{};
    std::optional<RespValue> reply;
    std::uint64_t clock = 0;  // what the node's clock showed meanwhile, in µs; 0: not known
  };

  // Moves on: connects where that is needed and due, sends, and takes answers.
  void advance(short ready, std::vector<Answer>& answers);
  engine::Conversation::Wait wait() const;

  std::uint64_t socket() const noexcept { return connector_.link().sockets(); }  // which, so far
  bool is_ready() const noexcept { return introduced_ && connector_.is_ready(); }
  // May have forgotten leases that still run, because it was started lately.
  bool is_young(base::Time now) const noexcept { return now < grown_up_; }

  // Only when ready.
  void ask(std::uint64_t tag, std::string_view call);
  // The script, which it does not know any more; the answer has the tag 0.
  void teach();

  const std::string& trouble() const noexcept { return trouble_; }
  const RedisAddress& address() const noexcept { return address_; }

 private:
  void lose(std::vector<Answer>& answers, const Error& error);
  void take_answers(base::Time now, std::vector<Answer>& answers);
  void introduce(const RespValue& info, std::vector<Answer>& answers);

  const RedisAddress address_;
  const base::Duration guard_;
  const base::Duration patience_;
  RedisConnector connector_;
  bool introduced_ = false;  // it has told its age
  std::optional<base::Time> asked_age_;
  base::Time grown_up_{};
  base::Time next_try_{};
  // How far it has come. It is given up when that stays the same for too long.
  struct Stage {
    std::uint64_t socket = 0;
    RedisLink::State state = RedisLink::State::closed;
    bool introduced = false;
    bool clogged = false;  // not all that was said could be sent
    bool operator==(const Stage&) const = default;
  };
  Stage stage() const;
  bool is_overdue(base::Time now) const;

  Stage reached_;
  base::Time moved_{};  // when it came there
  struct Question {
    std::uint64_t tag;
    base::Time at;
  };
  std::deque<Question> asked_;
  std::string trouble_;
};

}  // namespace holdfast::engines
