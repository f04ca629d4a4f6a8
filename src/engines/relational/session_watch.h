#pragma once

#include "base/file_descriptor.h"
#include "base/time.h"
#include "engine/bell.h"

namespace holdfast::engines::relational {

// The doorbell of locks that are connections: readable when one of them ends,
// when a hold runs out, or when the bell is rung. Not thread-safe but for the
// bell.
class SessionWatch {
 public:
  // While it lives, the end of that connection rings.
  class Post {
   public:
    Post() = default;
    Post(const SessionWatch& watch, int socket);
    ~Post();
    Post(Post&& other) noexcept;
    Post& operator=(Post&& other) noexcept;
    Post(const Post&) = delete;
    Post& operator=(const Post&) = delete;

   private:
    int epoll_ = -1;
    // A copy, to be taken out by hand: a forked child that has the socket as
    // well would keep it in there.
    base::FileDescriptor socket_;
  };

  SessionWatch();

  int fd() const noexcept { return epoll_.get(); }
  engine::Bell& bell() noexcept { return bell_; }
  // Rings then, unless it is to ring earlier. base::kNever: not at all.
  void ring_at(base::Time time);
  void silence();  // forgets the time

 private:
  base::FileDescriptor epoll_;
  base::FileDescriptor timer_;
  engine::Bell bell_;
  base::Time next_ = base::kNever;
};

}  // namespace holdfast::engines::relational
