#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/lock_record.h"
#include "simulation/stage.h"

namespace holdfast::sim {

// How a grant ended at the store.
enum class End : std::uint8_t { none, released, expired, forced, stolen, upgraded, transferred };

// One grant of the store, as an observer beside the store saw it.
struct Grant {
  core::RequestId id;
  core::SessionId session;
  core::Shape shape;
  Duration ttl{};
  std::uint64_t token = 0;
  std::uint64_t order = 0;  // among all grants of all names
  Time granted{};
  Time expires{};
  bool ghost = false;  // asked for by a message its sender had given up
  bool delivered = false;
  std::optional<Time> revoked = std::nullopt;
  std::optional<Time> given = std::nullopt;  // away by its holder, to whoever takes it
  End end = End::none;
  Time ended{};
  std::uint64_t successor = 0;  // upgraded: the token since then

  bool stands(Time now) const noexcept { return end == End::none && expires > now; }
};

// Writes down what the store does to each lock, by comparing its record before
// and after every step, and checks on the way what can be seen from here:
// tokens (S3), strangers' hands (S4), order (L2).
class Ledger {
 public:
  explicit Ledger(Stage& stage) : stage_{stage} {}

  // Told of waiters that were put out of the queue because they were silent.
  std::function<void(const std::string& name, const core::Waiter& waiter)> on_eviction;

  struct Step {
    const core::Operation* operation = nullptr;  // none: only time passed
    bool ghost = false;
  };
  void note(const std::string& name, const core::LockRecord& before, const core::LockRecord& after,
            const Step& step);

  // The grant whose block of tokens has this one, or what became of it by upgrades.
  Grant* find(const std::string& name, std::uint64_t token);
  // The first token of its block; 0 if it was never given out.
  std::uint64_t block_of(const std::string& name, std::uint64_t token);
  std::vector<Grant*> standing(const std::string& name);
  // Was the request granted once more, by a message that came late?
  bool granted_again(const std::string& name, const Grant& grant);
  // Since when nobody holds it; nothing if somebody does.
  std::optional<Time> free_since(const std::string& name);
  // When the last grant that is over ended.
  Time last_end(const std::string& name);

 private:
  struct Page {
    std::map<std::uint64_t, Grant> grants;
    std::vector<std::uint64_t> open;  // tokens of those that have not ended
    Time last_end = kStart;
    std::unordered_map<core::RequestId, std::uint64_t> arrivals;
    std::unordered_map<core::RequestId, bool> ghosts;
  };

  void note_ends(Page& page, const std::string& name, const core::LockRecord& before,
                 const core::LockRecord& after, const Step& step);
  void note_stay(Grant& grant, const std::string& name, const core::Holder& holder,
                 const Step& step);
  void note_waiters(Page& page, const std::string& name, const core::LockRecord& before,
                    const core::LockRecord& after, const Step& step);
  void note_revocations(Page& page, const std::string& name, const core::LockRecord& after,
                        const Step& step);
  void note_grants(Page& page, const std::string& name, const core::LockRecord& before,
                   const core::LockRecord& after, const Step& step);
  void check_token(const Page& page, const std::string& name, const Grant& grant);
  void check_order(Page& page, const std::string& name, const core::Holder& holder,
                   const core::LockRecord& before, const core::LockRecord& after, const Step& step);

  Stage& stage_;
  std::map<std::string, Page> pages_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t orders_ = 0;
};

// Could two grants of these shapes not stand at the same time?
bool conflict(const core::Shape& a, const core::Shape& b) noexcept;

}  // namespace holdfast::sim
