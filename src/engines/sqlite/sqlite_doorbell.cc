#include "engines/sqlite/sqlite_doorbell.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/time.h"

namespace holdfast::engines {
namespace {

// A datagram: this, then the rings.
constexpr std::array<char, 4> kMagic{'h', 'f', 'r', '1'};
constexpr std::size_t kRingBytes = 16 + 8;
constexpr std::size_t kMaxRings = 64;
using Datagram = std::array<char, kMagic.size() + kMaxRings * kRingBytes>;

// Younger strays may belong to a process that is just starting.
constexpr std::uint64_t kStrayAgeMicroseconds = 60'000'000;

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

// Through /proc, because a socket's path has room for 107 bytes only.
Address address_in(int directory, const std::string& file) {
  Address address;
  address.name.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(directory) + '/' + file;
  const std::size_t size = std::min(path.size(), sizeof address.name.sun_path - 1);
  std::memcpy(address.name.sun_path, path.data(), size);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size + 1);
  return address;
}

int new_socket() {
  return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

bool someone_listens(int directory, const std::string& file) {
  const base::FileDescriptor probe{new_socket()};
  if (!probe) {
    return true;  // not known to be dead
  }
  const Address address = address_in(directory, file);
  return connect(probe.get(), address.get(), address.size) == 0 ||
         (errno != ECONNREFUSED && errno != ENOENT);
}

// Who may use the database may ring at it: the same classes of users.
mode_t directory_mode(const struct stat& database) {
  mode_t mode = 0700;
  mode |= (database.st_mode & 0060) == 0060 ? 0070 : 0;
  mode |= (database.st_mode & 0006) == 0006 ? 0007 : 0;
  return mode;
}

// A ring can be a grant: whoever made the directory, or may write to it, must
// be one who could have written the grant into the database.
bool is_trusted(int directory, const struct stat& database) {
  struct stat info {};
  return fstat(directory, &info) == 0 &&
         (info.st_uid == geteuid() || info.st_uid == database.st_uid || info.st_uid == 0) &&
         (info.st_mode & 0022 & ~directory_mode(database)) == 0;
}

bool is_session_name(std::string_view file) {
  return file.size() == 32 && file.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

SqliteDoorbell::SqliteDoorbell(const std::string& database, const core::SessionId& session)
    : session_{session}, directory_{database + "-bells"} {
  // Another process that leaves may remove the directory under our feet.
  for (int attempt = 0; attempt < 10 && !socket_; ++attempt) {
    if (!listen(database)) {
      return;
    }
  }
}

// False if another attempt would not help.
bool SqliteDoorbell::listen(const std::string& database) {
  struct stat info {};
  if (stat(database.c_str(), &info) != 0) {
    return false;
  }
  const mode_t mode = directory_mode(info);
  if (mkdir(directory_.c_str(), 0700) == 0) {
    chmod(directory_.c_str(), mode);  // mkdir() heeds the umask
  } else if (errno != EEXIST) {
    return false;
  }
  directory_fd_ =
      base::FileDescriptor{open(directory_.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!directory_fd_) {
    return errno == ENOENT;
  }
  if (!is_trusted(directory_fd_.get(), info)) {
    directory_fd_ = {};
    return false;
  }
  base::FileDescriptor made{new_socket()};
  const std::string file = session_.hex();
  const Address address = address_in(directory_fd_.get(), file);
  int error = bind(made.get(), address.get(), address.size) == 0 ? 0 : errno;
  if (error == EADDRINUSE && !someone_listens(directory_fd_.get(), file)) {
    remove(session_);
    error = bind(made.get(), address.get(), address.size) == 0 ? 0 : errno;
  }
  if (error != 0) {
    return error == ENOENT;
  }
  fchmodat(directory_fd_.get(), file.c_str(), mode & 0666, 0);
  socket_ = std::move(made);
  return true;
}

void SqliteDoorbell::say_goodbye() noexcept {
  if (socket_) {
    remove(session_);
    rmdir(directory_.c_str());  // fails while others have sockets in it
  }
}

std::vector<engine::Ring> SqliteDoorbell::answer() {
  std::vector<engine::Ring> rings;
  Datagram datagram;
  while (true) {
    const ssize_t got = recv(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return rings;
    }
    const auto size = static_cast<std::size_t>(got);
    if (size < kMagic.size() || !std::equal(kMagic.begin(), kMagic.end(), datagram.begin())) {
      continue;
    }
    for (std::size_t at = kMagic.size(); at + kRingBytes <= size; at += kRingBytes) {
      engine::Ring ring;
      std::memcpy(ring.id.bytes.data(), datagram.data() + at, 16);
      std::memcpy(&ring.token, datagram.data() + at + 16, 8);
      rings.push_back(ring);
    }
  }
}

bool SqliteDoorbell::ring(const core::SessionId& session, std::span<const engine::Ring> rings) {
  if (!socket_) {
    return false;
  }
  while (!rings.empty()) {
    const auto some = rings.first(std::min(rings.size(), kMaxRings));
    Datagram datagram;
    char* at = std::copy(kMagic.begin(), kMagic.end(), datagram.data());
    for (const engine::Ring& ring : some) {
      std::memcpy(at, ring.id.bytes.data(), 16);
      std::memcpy(at + 16, &ring.token, 8);
      at += kRingBytes;
    }
    const auto size = static_cast<std::size_t>(at - datagram.data());
    if (!send_to(session, {datagram.data(), size})) {
      return false;  // gone, or so many unread rings that it is awake anyway
    }
    rings = rings.subspan(some.size());
  }
  return true;
}

bool SqliteDoorbell::send_to(const core::SessionId& session, std::span<const char> datagram) {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  const std::lock_guard lock{mutex_};
  const bool again = session == neighbour_;
  if (again && line_ && send(line_.get(), datagram.data(), datagram.size(), kFlags) >= 0) {
    return true;
  }
  neighbour_ = session;
  line_ = {};
  const Address address = address_in(directory_fd_.get(), session.hex());
  if (sendto(socket_.get(), datagram.data(), datagram.size(), kFlags, address.get(), address.size) <
      0) {
    return false;
  }
  if (again) {
    base::FileDescriptor line{new_socket()};
    if (line && connect(line.get(), address.get(), address.size) == 0) {
      line_ = std::move(line);
    }
  }
  return true;
}

bool SqliteDoorbell::is_alive(const core::SessionId& session) const {
  return session == session_ || !directory_fd_ ||
         someone_listens(directory_fd_.get(), session.hex());
}

void SqliteDoorbell::remove(const core::SessionId& session) const {
  unlinkat(directory_fd_.get(), session.hex().c_str(), 0);
}

void SqliteDoorbell::remove_strays() const {
  DIR* const listing = opendir(directory_.c_str());
  if (listing == nullptr) {
    return;
  }
  while (const dirent* entry = readdir(listing)) {
    struct stat info {};
    if (!is_session_name(entry->d_name) ||
        fstatat(directory_fd_.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    const auto born = static_cast<std::uint64_t>(info.st_mtim.tv_sec) * 1'000'000;
    if (S_ISSOCK(info.st_mode) && born + kStrayAgeMicroseconds < base::wall_microseconds() &&
        !someone_listens(directory_fd_.get(), entry->d_name)) {
      unlinkat(directory_fd_.get(), entry->d_name, 0);
    }
  }
  closedir(listing);
}

}  // namespace holdfast::engines
