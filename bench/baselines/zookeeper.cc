// ZooKeeper by hand: an ephemeral sequential node made and deleted, each awaited.
#define THREADED  // NOLINT: the blocking calls
#include <zookeeper/zookeeper.h>

#include <array>
#include <thread>

#include "baselines.h"

namespace baselines {

namespace {

class Session {
 public:
  explicit Session(const std::string& port) {
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    handle_ = zookeeper_init(("127.0.0.1:" + port).c_str(), nullptr, 10'000, nullptr, nullptr, 0);
    if (handle_ == nullptr) {
      give_up("zookeeper_init");
    }
    while (zoo_state(handle_) != ZOO_CONNECTED_STATE) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  ~Session() { zookeeper_close(handle_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void make(const std::string& path) const {
    zoo_create(handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, nullptr, 0);
  }

  enum class Look : bool { no, yes };
  void cycle(const std::string& lock, Look look) const {
    std::array<char, 256> path{};
    String_vector names{};
    bool good = zoo_create(handle_, (lock + "/lock-").c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                           ZOO_EPHEMERAL_SEQUENTIAL, path.data(), path.size()) == ZOK;
    if (look == Look::yes) {
      good = good && zoo_get_children(handle_, lock.c_str(), 0, &names) == ZOK;
      deallocate_String_vector(&names);
    }
    if (!good || zoo_delete(handle_, path.data(), -1) != ZOK) {
      give_up("zoo_create, zoo_delete");
    }
  }

 private:
  zhandle_t* handle_ = nullptr;
};

}  // namespace

double zookeeper_cycles(const std::string& port, double seconds) {
  const Session session{port};
  session.make("/by-hand");
  return repeat(seconds, 1,
                [&](unsigned, std::size_t) { session.cycle("/by-hand", Session::Look::no); });
}

double zookeeper_queues(const std::string& port, double seconds) {
  constexpr unsigned kThreads = 32;
  const Session session{port};
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    session.make("/by-hand-" + std::to_string(thread));
  }
  return repeat(seconds, kThreads, [&](unsigned thread, std::size_t) {
    session.cycle("/by-hand-" + std::to_string(thread), Session::Look::yes);
  });
}

}  // namespace baselines
