// The other process of the multi-process tests: obeys one line at a time.
//
//   acquire KEY NAME [ttl=MS] [wait=MS] [renew=0] [mode=shared] [permits=K/N]
//                               -> ok TOKEN | error CODE; KEY names the lease from now on
//   release KEY                 -> ok | error CODE
//   status KEY                  -> ok alive=0|1 lost=TIMES loss=REASON
//   write KEY FILE              -> ok accepted|refused, by a FencedFile
//   cycle NAME COUNT FILE [acquire's options]
//                               -> ok | error ...; COUNT turns inside the lock, each a
//                                  fenced write, checking that nobody else is inside
//   jobs PREFIX FILE AT_ONCE [acquire's options]
//                               -> ok; claims and completes the jobs of a JobLedger,
//                                  AT_ONCE at a time, until none is open
//   block                       -> ok; holds the write lock of the SQLite file itself
//   close                       -> ok; drops all leases and the client in good order
#include <holdfast/holdfast.h>
#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support/fenced_file.h"
#include "support/job_ledger.h"

namespace {

using namespace holdfast;  // NOLINT: a program of one file

struct Held {
  Lease lease;
  std::atomic<int> lost = 0;
  std::optional<std::stop_callback<std::function<void()>>> watch;
};

class Servant {
 public:
  explicit Servant(std::string url) : url_{std::move(url)} {}

  std::string obey(const std::string& line) {
    std::istringstream words{line};
    std::string verb;
    words >> verb;
    if (verb == "acquire") return acquire(words);
    if (verb == "release") return release(words);
    if (verb == "status") return status(words);
    if (verb == "write") return write(words);
    if (verb == "cycle") return cycle(words);
    if (verb == "jobs") return jobs(words);
    if (verb == "block") return block();
    if (verb == "close") return close();
    return "error unknown command " + verb;
  }

 private:
  Client& client() {
    if (!client_) {
      auto opened = Client::open(url_);
      if (!opened) throw LockError{opened.error()};
      client_.emplace(std::move(*opened));
    }
    return *client_;
  }

  static std::string failure(const Error& error) {
    return "error " + std::string{to_string(error.code)} + " " + error.text;
  }

  static AcquireOptions options(std::istringstream& words) {
    AcquireOptions options;
    for (std::string word; words >> word;) {
      const auto equals = word.find('=');
      const std::string key = word.substr(0, equals);
      const std::string value = word.substr(equals + 1);
      if (key == "ttl") options.ttl = std::chrono::milliseconds{std::stol(value)};
      if (key == "wait") options.wait = std::chrono::milliseconds{std::stol(value)};
      if (key == "renew") options.renew = value == "1";
      if (key == "mode" && value == "shared") options.mode = Mode::shared;
      if (key == "permits") {
        options.mode = Mode::permits;
        options.permits = static_cast<std::uint32_t>(std::stoul(value));
        options.of = static_cast<std::uint32_t>(std::stoul(value.substr(value.find('/') + 1)));
      }
    }
    return options;
  }

  std::string acquire(std::istringstream& words) {
    std::string key;
    std::string name;
    words >> key >> name;
    auto lease = client().acquire(name, options(words));
    if (!lease) return failure(lease.error());
    auto held = std::make_unique<Held>();
    held->lease = std::move(*lease);
    held->watch.emplace(held->lease.lost(), [counter = &held->lost] { ++*counter; });
    const auto token = held->lease.token();
    held_[key] = std::move(held);
    return "ok " + std::to_string(token.value_or(0));
  }

  std::string release(std::istringstream& words) {
    auto result = find(words).lease.release();
    return result ? "ok" : failure(result.error());
  }

  std::string status(std::istringstream& words) {
    const Held& held = find(words);
    const auto loss = held.lease.loss();
    std::ostringstream out;
    out << "ok alive=" << held.lease.is_alive() << " lost=" << held.lost
        << " loss=" << (loss ? to_string(*loss) : "none");
    return out.str();
  }

  std::string write(std::istringstream& words) {
    const Held& held = find(words);
    std::string file;
    words >> file;
    const bool taken = test::FencedFile{file}.write(held.lease.token().value_or(0), me());
    return taken ? "ok accepted" : "ok refused";
  }

  std::string cycle(std::istringstream& words) {
    std::string name;
    std::string file;
    int count = 0;
    words >> name >> count >> file;
    const AcquireOptions how = options(words);
    for (int turn = 0; turn < count; ++turn) {
      auto lease = client().acquire(name, how);
      if (!lease) return failure(lease.error());
      const test::Inside inside{file + ".inside"};
      if (!inside.alone()) return "error two holders at once";
      if (!test::FencedFile{file}.write(lease->token().value_or(0), me())) {
        return "error token fell";
      }
    }
    return "ok";
  }

  std::string jobs(std::istringstream& words) {
    std::string prefix;
    std::string file;
    std::size_t at_once = 1;
    words >> prefix >> file >> at_once;
    const AcquireOptions how = options(words);
    const test::JobLedger ledger{file};
    while (true) {
      std::vector<std::string> names;
      for (const int job : ledger.open_jobs()) names.push_back(prefix + std::to_string(job));
      if (names.empty()) return "ok";
      auto claimed = client().claim_any(names, at_once, how);
      if (!claimed) return failure(claimed.error());
      for (Lease& lease : *claimed) {
        const int job = std::stoi(lease.name().substr(prefix.size()));
        const std::uint64_t token = lease.token().value_or(0);
        if (ledger.begin(job, token)) ledger.complete(job, token);
      }
      if (claimed->empty()) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  }

  std::string block() {
    const std::string path = url_.substr(url_.find(':') + 1);
    sqlite3* handle = nullptr;
    if (::sqlite3_open(path.c_str(), &handle) != SQLITE_OK) return "error open";
    ::sqlite3_busy_timeout(handle, 10'000);
    if (::sqlite3_exec(handle, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) {
      return std::string{"error "} + ::sqlite3_errmsg(handle);
    }
    return "ok";  // until we are killed
  }

  std::string close() {
    held_.clear();
    client_.reset();
    return "ok";
  }

  Held& find(std::istringstream& words) {
    std::string key;
    words >> key;
    return *held_.at(key);
  }

  static std::string me() { return std::to_string(::getpid()); }

  std::string url_;
  std::optional<Client> client_;
  std::map<std::string, std::unique_ptr<Held>> held_;
};

// Reads ahead, so that the end of the test ends us in the middle of a wait.
class Lines {
 public:
  Lines() {
    std::thread{[this] {
      for (std::string line; std::getline(std::cin, line);) {
        const std::scoped_lock lock{mutex_};
        lines_.push_back(line);
        arrived_.notify_one();
      }
      ::_exit(0);
    }}.detach();
  }

  std::string next() {
    std::unique_lock lock{mutex_};
    arrived_.wait(lock, [this] { return !lines_.empty(); });
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    return line;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::string> lines_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  Servant worker{argv[1]};
  Lines lines;
  while (true) {
    try {
      std::cout << worker.obey(lines.next()) << std::endl;
    } catch (const std::exception& error) {
      std::cout << "error exception " << error.what() << std::endl;
    }
  }
}
