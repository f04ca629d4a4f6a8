#include "support/server.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "support/eventually.h"
#include "support/free_port.h"

namespace holdfast::test {
namespace {

namespace fs = std::filesystem;

const std::string kTool = HOLDFAST_SOURCE_DIR "/tools/server.py";
constexpr std::chrono::seconds kStart{120};

// nullopt: the list does not end yet.
std::optional<ServerFacts> parse(std::istream& text) {
  ServerFacts facts;
  for (std::string line; std::getline(text, line);) {
    if (line.empty()) {
      return facts;
    }
    const auto equals = line.find('=');
    facts[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return std::nullopt;
}

ServerFacts await_facts(Process& tool) {
  std::optional<ServerFacts> facts;
  eventually(
      [&] {
        const bool ended = !tool.is_running();
        std::istringstream text{tool.out()};
        facts = parse(text);
        return facts || ended;
      },
      kStart);
  if (!facts) {
    throw std::runtime_error{"a server does not start: " + tool.err()};
  }
  return *facts;
}

// Of one checkout and user: two checkouts may differ in how servers are made.
fs::path shared_directory(const std::string& kind) {
  const auto checkout = std::hash<std::string>{}(HOLDFAST_SOURCE_DIR);
  return fs::temp_directory_path() /
         ("holdfast-servers-" + std::to_string(getuid()) + "-" + std::to_string(checkout)) / kind;
}

int lock_shared(const fs::path& file) {
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 || flock(fd, LOCK_SH) != 0) {
    throw std::runtime_error{"cannot lock " + file.string()};
  }
  return fd;
}

// What runs already, if anything. Looking at `alive` locks it for a moment,
// which must not be mistaken for a server: nobody starts one meanwhile.
std::optional<ServerFacts> running_server(const fs::path& directory) {
  const int nobody_starts = lock_shared(directory / "starting");
  const int alive = open((directory / "alive").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  const bool runs = flock(alive, LOCK_SH | LOCK_NB) != 0;
  close(alive);
  std::ifstream ready{directory / "ready"};
  auto facts = runs ? parse(ready) : std::nullopt;
  close(nobody_starts);
  return facts;
}

ServerFacts join_shared_server(const std::string& kind) {
  const fs::path directory = shared_directory(kind);
  fs::create_directories(directory);
  lock_shared(directory / "users");  // kept, on purpose, for the process's life
  if (auto facts = running_server(directory)) {
    return *facts;
  }
  Process tool = Process::start({kTool, "--shared", kind, directory.string()});
  return await_facts(tool);
}

}  // namespace

const ServerFacts& shared_server(const std::string& kind) {
  static std::mutex mutex;
  static std::map<std::string, ServerFacts> joined;
  const std::lock_guard guard{mutex};
  const auto known = joined.find(kind);
  return known != joined.end() ? known->second
                               : joined.emplace(kind, join_shared_server(kind)).first->second;
}

std::string shared_server_port(const std::string& kind) {
  return shared_server(kind).at("port");
}

PrivateServer::PrivateServer(std::string kind, std::vector<std::string> options)
    : kind_{std::move(kind)}, options_{std::move(options)} {
  // Servers that refuse to be root run as somebody else.
  fs::permissions(dir_.path(),
                  fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
  if (std::ranges::none_of(options_, [](const auto& each) { return each.starts_with("port="); })) {
    options_.push_back("port=" + std::to_string(free_port()));
  }
  start();
}

PrivateServer::~PrivateServer() {
  kill();
}

void PrivateServer::signal(int number) const {
  ::kill(static_cast<pid_t>(std::stol(fact("pid"))), number);
}

void PrivateServer::kill() {
  if (supervisor_) {
    signal(SIGKILL);
    supervisor_->wait();  // it sees to the end of the server
    supervisor_.reset();
  }
}

void PrivateServer::start() {
  std::vector<std::string> words{kTool, kind_, dir_.path() / "server"};
  words.insert(words.end(), options_.begin(), options_.end());
  supervisor_.emplace(Process::start(words));
  facts_ = await_facts(*supervisor_);
  port_ = static_cast<std::uint16_t>(std::stoul(fact("port")));
}

std::optional<std::string> missing_program(const std::string& program) {
  for (const char* directory : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/lib/"}) {
    if (access((directory + program).c_str(), X_OK) == 0) {
      return std::nullopt;
    }
  }
  return program + " is not installed";
}

}  // namespace holdfast::test
