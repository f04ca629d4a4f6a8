#include "waiting.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "duration.h"
#include "exit_status.h"
#include "lock_text.h"
#include "text.h"

namespace holdfast::command {
namespace {

// Where the library's thread leaves the answer, and how it wakes ours.
class Answer {
 public:
  Answer() : fd_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (!fd_) {
      throw std::system_error{errno, std::generic_category(), "eventfd"};
    }
  }

  void put(Result<std::vector<Lease>> result) {
    const std::lock_guard lock{mutex_};
    result_ = std::move(result);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(fd_.get(), &one, sizeof one);
  }

  std::optional<Result<std::vector<Lease>>> take() {
    const std::lock_guard lock{mutex_};
    return std::exchange(result_, std::nullopt);
  }

  int fd() const noexcept { return fd_.get(); }

 private:
  std::mutex mutex_;
  std::optional<Result<std::vector<Lease>>> result_;
  Descriptor fd_;
};

// "held by make@web1:4711 for 3 s", or nothing if that cannot be learned.
std::string held_by(Client& client, const std::string& name) {
  const auto lock = client.show(name);
  if (!lock || lock->holders.empty()) {
    return "";
  }
  const HolderInfo& holder = lock->holders.front();
  std::string text =
      "held by " + party_text(holder.party) + " for " + human_duration(holder.held_for);
  if (lock->holders.size() > 1) {
    text += " and " + std::to_string(lock->holders.size() - 1) + " more";
  }
  return text;
}

// The one that is held by somebody, or the first.
std::string culprit(Client& client, const std::vector<std::string>& names) {
  const auto held = std::ranges::find_if(
      names, [&](const std::string& name) { return !held_by(client, name).empty(); });
  return held == names.end() ? names.front() : *held;
}

int report_failure(const Context& context, Client& client, const std::vector<std::string>& names,
                   const Error& error) {
  if (error.code != ErrorCode::busy && error.code != ErrorCode::timed_out) {
    return report(context, error);
  }
  const std::string name = names.size() == 1 ? names.front() : culprit(client, names);
  const std::string holder = held_by(client, name);
  std::string text = in_quotes(name);
  text += error.code == ErrorCode::busy ? " is busy" : " did not come free in time";
  text += holder.empty() ? "" : ", " + holder;
  text += error.code == ErrorCode::busy ? "; wait for it with --wait 10s"
                                        : "; wait longer with --wait, or see 'holdfast show'";
  return report(context, {error.code, text, error.native});
}

class Wait {
 public:
  Wait(const Context& context, Client& client, std::vector<std::string> names, SignalInbox& signals)
      : context_{context}, client_{client}, names_{std::move(names)}, signals_{signals} {}

  tl::expected<std::vector<Lease>, int> run(AcquireOptions options) {
    options.stop = stop_.get_token();
    const std::jthread asking = names_.size() > 1 ? ask_for_all(options) : ask_for_one(options);
    std::optional<Result<std::vector<Lease>>> result;
    while (!result) {
      look();
      result = answer_->take();
    }
    if (ended_by_) {
      if (*result) {
        (void)LeaseSet{std::move(**result)}.release();  // granted at the same moment
      }
      return tl::unexpected{kSignalBase + *ended_by_};
    }
    if (!*result) {
      return tl::unexpected{report_failure(context_, client_, names_, result->error())};
    }
    return std::move(**result);
  }

 private:
  std::jthread ask_for_one(const AcquireOptions& options) {
    client_.acquire_then(names_.front(), options, [answer = answer_](Result<Lease> result) {
      if (!result) {
        answer->put(tl::unexpected{std::move(result.error())});
        return;
      }
      std::vector<Lease> one;
      one.push_back(std::move(*result));
      answer->put(std::move(one));
    });
    return {};
  }

  std::jthread ask_for_all(const AcquireOptions& options) {
    return std::jthread{[this, options, answer = answer_] {
      auto all = client_.acquire_all({names_.begin(), names_.end()}, options);
      if (all) {
        answer->put(std::move(*all).take());
      } else {
        answer->put(tl::unexpected{std::move(all.error())});
      }
    }};
  }

  void look() {
    std::array<pollfd, 2> entries{{{signals_.fd(), POLLIN, 0}, {answer_->fd(), POLLIN, 0}}};
    constexpr int kTellAfter = 1000;  // ms; a person at a terminal wonders by then
    const bool can_tell = !told_ && !context_.json && isatty(STDERR_FILENO) == 1;
    const int ready = poll(entries.data(), entries.size(), can_tell ? kTellAfter : -1);
    if (ready == 0) {
      const std::string name = culprit(client_, names_);
      const std::string holder = held_by(client_, name);
      warn(context_, "waiting for " + in_quotes(name) + (holder.empty() ? "" : ", " + holder));
      told_ = true;
    }
    while (const auto number = signals_.take()) {
      handle(*number);
    }
  }

  void handle(int number) {
    if (number == SIGTSTP) {
      raise(SIGSTOP);
    } else if (number != SIGCONT && number != SIGCHLD) {
      if (ended_by_) {
        _exit(kSignalBase + number);
      }
      ended_by_ = number;
      stop_.request_stop();
    }
  }

  const Context& context_;
  Client& client_;
  std::vector<std::string> names_;
  SignalInbox& signals_;
  std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
  std::stop_source stop_;
  std::optional<int> ended_by_;
  bool told_ = false;
};

}  // namespace

tl::expected<std::vector<Lease>, int> wait_for_locks(const Context& context, Client& client,
                                                     std::vector<std::string> names,
                                                     AcquireOptions options, SignalInbox& signals) {
  return Wait{context, client, std::move(names), signals}.run(std::move(options));
}

}  // namespace holdfast::command
