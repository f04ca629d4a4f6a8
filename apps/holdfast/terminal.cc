#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::command {

Terminal::Terminal() : tty_{open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)} {}

bool Terminal::is_ours() const noexcept {
  return tty_ && tcgetpgrp(tty_.get()) == getpgrp();
}

bool Terminal::is_for_the_command() const noexcept {
  return is_ours() && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

void Terminal::give_to(pid_t group) noexcept {
  if (tty_ && tcsetpgrp(tty_.get(), group) == 0) {
    given_ = true;
  }
}

void Terminal::take_back() noexcept {
  if (given_) {
    tcsetpgrp(tty_.get(), getpgrp());
    given_ = false;
  }
}

}  // namespace holdfast::command
