#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "torture/board.h"

namespace holdfast::command::torture {

// The worker processes of a round. Those that are still there end with it.
class Crew {
 public:
  Crew(BoardMemory& memory, std::string url) : memory_{memory}, url_{std::move(url)} {}
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // The number of the new process, which is never used again.
  Result<std::uint32_t> start();

  std::size_t size() const noexcept { return members_.size(); }
  std::uint32_t process(std::size_t member) const { return members_.at(member).process; }
  bool is_stopped(std::size_t member) const { return members_.at(member).stopped; }
  std::size_t stopped() const noexcept;

  // SIGKILL; when it returns, the process is gone. Its place is free.
  void kill(std::size_t member);
  void stop(std::size_t member);
  void resume(std::uint32_t process);
  void resume_all();

  // False: not all have ended in time. Fails if one of them did.
  Result<bool> await_end(Duration at_most);
  // Fails if one ended that nobody killed.
  Result<void> look_after();

 private:
  struct Member {
    pid_t pid = -1;
    std::uint32_t process = 0;
    bool stopped = false;
  };
  Error failure(int code, int status) const;

  BoardMemory& memory_;
  std::string url_;
  std::uint32_t started_ = 0;
  std::vector<Member> members_;
};

}  // namespace holdfast::command::torture
