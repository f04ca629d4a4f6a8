#include "engines/sqlite/sqlite_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/file_descriptor.h"
#include "base/ids.h"

namespace holdfast::engines {
namespace {

namespace fs = std::filesystem;

// SQLite's 512, less what it appends.
constexpr std::size_t kMaxPath = 500;

struct Known {
  std::uint32_t type;
  std::string_view name;
};

// Reachable from other machines, or known for locks that do not lock.
constexpr std::array kUnsafe{
    Known{NFS_SUPER_MAGIC, "NFS"},
    Known{SMB_SUPER_MAGIC, "SMB"},
    Known{CIFS_SUPER_MAGIC, "CIFS"},
    Known{SMB2_SUPER_MAGIC, "SMB2"},
    Known{NCP_SUPER_MAGIC, "NCP"},
    Known{AFS_SUPER_MAGIC, "AFS"},
    Known{AFS_FS_MAGIC, "AFS"},
    Known{CODA_SUPER_MAGIC, "Coda"},
    Known{CEPH_SUPER_MAGIC, "CephFS"},
    Known{OCFS2_SUPER_MAGIC, "OCFS2"},
    Known{V9FS_MAGIC, "9P"},
    Known{0x01161970, "GFS2"},
    Known{0x0BD00BD0, "Lustre"},
    Known{0x47504653, "GPFS"},
    Known{0x19830326, "BeeGFS"},
    Known{0x20030528, "OrangeFS"},
    Known{0x61636673, "ACFS"},
    Known{0xAAD7AAEA, "PanFS"},
    Known{0xBEEFDEAD, "SNFS"},
    Known{0x013111A8, "IBRIX"},
    Known{0x786F4256, "VirtualBox shared folder"},
    Known{0xBACBACBC, "VMware shared folder"},
    Known{0x7C7C6013, "Parallels shared folder"},
};

constexpr std::array kLocal{
    Known{EXT4_SUPER_MAGIC, "ext4"},
    Known{XFS_SUPER_MAGIC, "xfs"},
    Known{BTRFS_SUPER_MAGIC, "btrfs"},
    Known{TMPFS_MAGIC, "tmpfs"},
    Known{OVERLAYFS_SUPER_MAGIC, "overlay"},
    Known{F2FS_SUPER_MAGIC, "f2fs"},
    Known{0x2FC12FC1, "zfs"},
    Known{FUSE_SUPER_MAGIC, "FUSE"},
};

std::optional<std::uint64_t> type_of(const std::string& path) {
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(info.f_type);  // some are negative as the signed type
}

tl::unexpected<Error> system_error(ErrorCode code, std::string text, int number) {
  return fail(code, std::move(text) + ": " + std::strerror(number));
}

ErrorCode code_for(int number) {
  return number == EACCES || number == EPERM ? ErrorCode::unauthorized : ErrorCode::unavailable;
}

// SQLite works beside the file as well as in it.
Result<void> check_access(const fs::path& file, bool exists) {
  const fs::path directory = file.parent_path();
  for (const fs::path& place : {file, directory}) {
    const bool may = (place == file && !exists) ||
                     faccessat(AT_FDCWD, place.c_str(), R_OK | W_OK, AT_EACCESS) == 0;
    if (!may) {
      return system_error(code_for(errno), "no permission to read and write " + place.string(),
                          errno);
    }
  }
  return {};
}

}  // namespace

std::optional<std::string_view> unsafe_file_system(std::uint64_t f_type, bool allow_fuse) noexcept {
  if (f_type == FUSE_SUPER_MAGIC && !allow_fuse) {
    return "FUSE";
  }
  for (const Known& known : kUnsafe) {
    if (known.type == f_type) {
      return known.name;
    }
  }
  return std::nullopt;
}

std::string file_system_name(const std::string& path) {
  const auto type = type_of(path);
  if (!type) {
    return "unknown";
  }
  if (const auto unsafe = unsafe_file_system(*type, true)) {
    return std::string{*unsafe};
  }
  for (const Known& known : kLocal) {
    if (known.type == *type) {
      return std::string{known.name};
    }
  }
  return "type " + std::to_string(*type);
}

Result<SqliteOptions> locate(SqliteOptions options) {
  std::error_code error;
  const fs::path wanted = fs::absolute(options.path, error);
  fs::path found = fs::canonical(wanted, error);
  const bool exists = !error;
  if (!exists) {
    const fs::path parent = fs::canonical(wanted.parent_path(), error);
    if (error == std::errc::permission_denied) {
      return fail(ErrorCode::unauthorized,
                  "no permission to look into the directory of " + options.path);
    }
    if (error || !fs::is_directory(parent, error)) {
      return fail(ErrorCode::invalid_argument, "there is no directory " +
                                                   wanted.parent_path().string() +
                                                   "; create it, or choose another file");
    }
    found = parent / wanted.filename();
  } else if (!fs::is_regular_file(found, error)) {
    return fail(
        ErrorCode::invalid_argument,
        found.string() + " is not a regular file; name one, as in sqlite:/var/lib/app/locks.db");
  }
  options.path = found.string();
  if (options.path.size() > kMaxPath) {
    return fail(ErrorCode::invalid_argument,
                "the path of the database is too long: " + std::to_string(options.path.size()) +
                    " bytes, SQLite takes " + std::to_string(kMaxPath));
  }
  const auto type = type_of(exists ? options.path : found.parent_path().string());
  if (const auto name = unsafe_file_system(type.value_or(0), options.allow_fuse)) {
    const bool fuse = *name == "FUSE";
    return fail(ErrorCode::unsupported,
                options.path + " is on " + std::string{*name} +
                    ", where locks are not safe; choose a file on a local disk, or a store with a "
                    "server" +
                    (fuse ? " (allow_fuse=true if you know that this one locks properly)" : ""));
  }
  return check_access(found, exists).map([&] { return std::move(options); });
}

Result<void> create_if_missing(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    return {};
  }
  // Made elsewhere and closed before it gets its name: by then SQLite, in
  // another thread, may hold locks that our close() would drop.
  const std::string draft = path + '.' + base::Id::random().hex();
  if (!base::FileDescriptor{open(draft.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)}) {
    return system_error(code_for(errno), "cannot create " + path, errno);
  }
  const int linked = link(draft.c_str(), path.c_str()) == 0 ? 0 : errno;
  unlink(draft.c_str());
  if (linked != 0 && linked != EEXIST && linked != EPERM && linked != EOPNOTSUPP) {
    return system_error(code_for(linked), "cannot create " + path, linked);
  }
  // The name must survive a power cut, or the tokens in the file do not.
  const std::string parent = fs::path{path}.parent_path().string();
  const base::FileDescriptor directory{open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  fsync(directory.get());
  return {};
}

Result<std::string> kernel_boot_id() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  if (!std::getline(file, id) || id.empty()) {
    return fail(ErrorCode::unavailable,
                "cannot read /proc/sys/kernel/random/boot_id, which tells whether the machine was "
                "restarted; mount /proc");
  }
  return id;
}

}  // namespace holdfast::engines
