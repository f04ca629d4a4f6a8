#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

struct st_mysql;
struct st_mysql_stmt;

namespace holdfast::engines {

// Values for one parameter of a statement, one a row.
using MysqlColumn =
    std::variant<std::vector<std::string>, std::vector<std::int64_t>, std::vector<std::uint64_t>>;

// A statement that is parsed once and then done with any number of rows at a time (MariaDB). The
// rows come as bytes beside it, never as text. Part of a session; each step is one of the
// library's.
class MysqlBulk {
 public:
  static constexpr std::size_t kAnswered = 4;  // numbers a row
  using Answer = std::array<std::uint64_t, kAnswered>;

  MysqlBulk() = default;
  ~MysqlBulk() { close(); }
  MysqlBulk(const MysqlBulk&) = delete;
  MysqlBulk& operator=(const MysqlBulk&) = delete;

  static bool is_known_to(st_mysql* mysql);

  // The same statement every time on one connection.
  void begin(st_mysql* mysql, std::string statement, std::vector<MysqlColumn> columns);
  int take_step(bool first, int events);  // what the library waits for; 0: the step is done
  bool finish_step();                     // false: another one follows

  bool failed() const noexcept { return result_ != 0; }
  unsigned code() const;
  std::string text() const;
  const std::vector<Answer>& answers() const noexcept { return answers_; }

  void close() noexcept;  // after its connection
  void forget() noexcept { statement_ = nullptr; }

 private:
  enum class Step : std::uint8_t { prepare, execute, store };

  bool bind();
  void read_answers();

  st_mysql_stmt* statement_ = nullptr;
  bool prepared_ = false;
  Step step_ = Step::prepare;
  int result_ = 0;  // where the library puts its answer
  std::string sql_;
  std::vector<MysqlColumn> columns_;
  // What the library reads while it sends.
  std::vector<std::vector<const char*>> pointers_;
  std::vector<std::vector<unsigned long>> lengths_;
  std::vector<Answer> answers_;
};

}  // namespace holdfast::engines
