#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <functional>
#include <new>

namespace holdfast::test {

// A forked copy of this test that runs a function and exits with its value.
// Killed, if need be, with the object. For tests without threads.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const noexcept { return pid_; }
  void signal(int number) const;
  int wait();  // its exit status; 128 + the signal that ended it

 private:
  pid_t pid_ = -1;
  int status_ = -1;
};

// A T that this process and its children see alike.
template <typename T>
class Shared {
 public:
  Shared()
      : value_{new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                         0)) T{}} {}
  ~Shared() { munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  T* operator->() const noexcept { return value_; }
  T& operator*() const noexcept { return *value_; }

 private:
  T* value_;
};

}  // namespace holdfast::test
