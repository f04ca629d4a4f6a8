// Redis by hand: plain SETs on one connection, each awaited.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <sstream>
#include <string_view>
#include <thread>

#include "baselines.h"

namespace baselines {

namespace {

class Connection {
 public:
  explicit Connection(const std::string& port)
      : fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int yes = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      give_up("connect");
    }
  }
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void set() const {
    ask();
    await();
  }

  void ask(std::string_view command = kSet) const {
    if (::write(fd_, command.data(), command.size()) != static_cast<ssize_t>(command.size())) {
      give_up("write");
    }
  }
  std::string await() const {
    std::array<char, 128> answer{};
    const ssize_t size = ::read(fd_, answer.data(), answer.size());
    if (size <= 0 || answer[0] == '-') {
      give_up("read");
    }
    return {answer.data(), static_cast<std::size_t>(size)};
  }

 private:
  static constexpr std::string_view kSet = "*3\r\n$3\r\nSET\r\n$7\r\nby-hand\r\n$3\r\nxxx\r\n";
  int fd_;
};

// A command with these words.
std::string command_of(const std::vector<std::string>& words) {
  std::string command = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    command += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return command;
}

}  // namespace

double redis_half_sets(const std::string& port, double seconds) {
  const Connection connection{port};
  return repeat(seconds, 1, [&](unsigned, std::size_t) { connection.set(); }) / 2;
}

double redis_scripts(const std::string& port, double seconds) {
  const Connection connection{port};
  connection.ask(command_of({"SCRIPT", "LOAD",
                             "redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) "
                             "redis.call('GET', KEYS[2]) redis.call('SET', KEYS[2], ARGV[1]) "
                             "return ARGV[1]"}));
  const std::string hash = connection.await().substr(5, 40);  // after "$40\r\n"
  const std::string script =
      command_of({"EVALSHA", hash, "2", "by-hand:1", "by-hand:2", std::string(100, 'x')});
  return repeat(seconds, 1, [&](unsigned, std::size_t) {
    connection.ask(script);
    connection.await();
  });
}

double redis_sets_at_once(const std::string& ports, double seconds) {
  std::vector<std::unique_ptr<Connection>> nodes;
  std::istringstream list{ports};
  for (std::string port; std::getline(list, port, ',');) {
    nodes.push_back(std::make_unique<Connection>(port));
  }
  std::vector<double> times;
  repeat(seconds, 1, [&](unsigned, std::size_t) {
    const Clock::time_point began = Clock::now();
    std::ranges::for_each(nodes, [](const auto& node) { node->ask(); });
    std::ranges::for_each(nodes, [](const auto& node) { node->await(); });
    times.push_back(std::chrono::duration<double, std::micro>{Clock::now() - began}.count());
  });
  std::ranges::sort(times);
  return times[times.size() / 2];
}

double redis_wake_up(const std::string& port, double seconds) {
  const Connection listener{port};
  listener.ask(command_of({"SUBSCRIBE", "by-hand"}));
  listener.await();
  const std::size_t rounds = static_cast<std::size_t>(
      std::max(seconds / std::chrono::duration<double>{kBetweenHandOvers}.count(), 3.0));
  std::atomic<Clock::time_point> left;
  const std::jthread holder{[&] {
    const Connection speaker{port};
    const std::string words =
        command_of({"SET", "by-hand", "xxx"}) + command_of({"PUBLISH", "by-hand", "xxx"});
    for (std::size_t i = 0; i < rounds; ++i) {
      std::this_thread::sleep_for(kBetweenHandOvers);
      left = Clock::now();
      speaker.ask(words);
      speaker.await();
    }
  }};
  std::vector<double> times;
  while (times.size() < rounds) {
    listener.await();
    times.push_back(std::chrono::duration<double, std::micro>{Clock::now() - left.load()}.count());
  }
  std::ranges::sort(times);
  return times[(times.size() - 1) / 2];
}

}  // namespace baselines
