#include "torture/board.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

namespace holdfast::command::torture {
namespace {

Board* map(int fd) {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Board*>(memory);
}

}  // namespace

Result<BoardMemory> BoardMemory::make() {
  Descriptor fd{memfd_create("holdfast-torture", MFD_CLOEXEC)};
  Board* board = nullptr;
  if (fd && ftruncate(fd.get(), sizeof(Board)) == 0) {
    board = map(fd.get());
  }
  if (board == nullptr) {
    return fail(ErrorCode::unavailable,
                "cannot make shared memory: " + std::generic_category().message(errno), errno);
  }
  new (board) Board{};
  return BoardMemory{board, std::move(fd)};
}

Result<BoardMemory> BoardMemory::from_standard_input() {
  struct stat info {};
  Board* board = nullptr;
  if (fstat(STDIN_FILENO, &info) == 0 && info.st_size == sizeof(Board)) {
    board = map(STDIN_FILENO);
  }
  if (board == nullptr || board->magic != Board::kMagic) {
    return fail(ErrorCode::invalid_argument,
                "--worker is for 'holdfast torture' itself; leave it out");
  }
  return BoardMemory{board, {}};
}

BoardMemory::BoardMemory(BoardMemory&& other) noexcept
    : board_{std::exchange(other.board_, nullptr)}, fd_{std::move(other.fd_)} {}

BoardMemory::~BoardMemory() {
  if (board_ != nullptr) {
    munmap(board_, sizeof(Board));
  }
}

std::string lock_name(const Board& board, std::uint32_t lock) {
  return board.prefix.data() + std::to_string(lock);
}

void note_failure(Board& board, const Error& error) {
  if (board.failed.exchange(true)) {
    return;  // the first is told
  }
  board.code = error.code;
  const std::size_t length = std::min(error.text.size(), board.error.size() - 1);
  std::memcpy(board.error.data(), error.text.data(), length);
}

}  // namespace holdfast::command::torture
