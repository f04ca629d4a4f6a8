#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/commands.h"
#include "engines/etcd/etcd_layout.h"
#include "engines/etcd/etcd_wire.h"

// Who holds a lock and who waits for it, by the keys below its name. Pure.
namespace holdfast::engines {

struct Entrant {
  EtcdKey key = {};
  EtcdNote note;
  std::optional<core::RequestId> request = std::nullopt;  // nullopt: a stranger's
  std::uint64_t token = 0;                                // 0: there are no more
  bool holds = false;
};
Entrant entrant_of(EtcdKey key);
// In the order of their creation, as the range brings them.
std::vector<Entrant> line_up(std::vector<EtcdKey> keys);

struct EtcdStanding {
  bool found = false;
  bool holds = false;
  bool revoked = false;
  bool refused = false;     // the name is in use in another way
  std::uint32_t limit = 0;  // that of the others, if refused
  std::uint32_t ahead = 0;
  std::string blocker = {};  // the key to watch
  bool next = false;         // once the blocker is gone this one holds, and not before
  std::int64_t create_revision = 0;
  std::int64_t mod_revision = 0;
  std::uint64_t token = 0;
};
const Entrant* entrant_in(const std::vector<Entrant>& line, std::string_view key,
                          const core::RequestId& id);
EtcdStanding standing_of(const std::vector<Entrant>& line, std::string_view key,
                         const core::RequestId& id);

// A grant's token is its create revision times 2^12: those who wait were created
// later, and will have higher ones. So there is room for 64 blocks in front of
// them for the grants that change while they last; nullopt: it is used up.
//
// For the only holder of this line, as it was at this revision: above whatever
// was granted before, below whatever will be.
std::optional<std::uint64_t> etcd_token_alone(const std::vector<Entrant>& line,
                                              std::int64_t revision);
// For whoever takes this grant over, perhaps among others who hold.
std::optional<std::uint64_t> etcd_token_after(const Entrant& giver);

// What a reader that holds has to do next to become the writer.
struct EtcdUpgrade {
  enum class Step : std::uint8_t {
    write,     // the note, and look again
    wait,      // until the blocker goes; that it waits is noted
    busy,      // another waits for the same, or it was not to wait
    no_token,  // it has changed too often
  };
  Step step = Step::busy;
  EtcdNote note;
  std::string blocker;
};
EtcdUpgrade next_of_upgrade(const std::vector<Entrant>& line, const Entrant& mine,
                            std::int64_t revision, bool queue);

}  // namespace holdfast::engines
