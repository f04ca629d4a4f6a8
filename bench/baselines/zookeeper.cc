// ZooKeeper by hand: an ephemeral sequential node made and deleted, each awaited.
#define THREADED  // NOLINT: the blocking calls
#include <zookeeper/zookeeper.h>

#include <array>
#include <thread>

#include "baselines.h"

namespace baselines {

double zookeeper_cycles(const std::string& port, double seconds) {
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  zhandle_t* handle =
      zookeeper_init(("127.0.0.1:" + port).c_str(), nullptr, 10'000, nullptr, nullptr, 0);
  if (handle == nullptr) {
    give_up("zookeeper_init");
  }
  while (zoo_state(handle) != ZOO_CONNECTED_STATE) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  zoo_create(handle, "/by-hand", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, nullptr, 0);
  const double rate = repeat(seconds, 1, [&](unsigned, std::size_t) {
    std::array<char, 256> path{};
    if (zoo_create(handle, "/by-hand/lock-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL,
                   path.data(), path.size()) != ZOK ||
        zoo_delete(handle, path.data(), -1) != ZOK) {
      give_up("zoo_create, zoo_delete");
    }
  });
  zookeeper_close(handle);
  return rate;
}

}  // namespace baselines
