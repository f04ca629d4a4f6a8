#pragma once

#include <holdfast/inspect.h>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/time.h"
#include "engines/mysql/mysql_options.h"

namespace holdfast::engines {

// The statements of one classic, as text with holes: {t} the table, {n} the
// name, {o} the owner, {ttl} microseconds, {row} the id that was seen. All are
// single conditional statements: the server decides who gets the lock.
struct ClassicForm {
  std::string_view strategy;
  TokenKind token = TokenKind::none;
  std::string_view default_table;
  // Its columns, as options name them; the first is the lock's name.
  std::span<const std::string_view> columns;
  std::string_view create{};
  std::string_view now{};   // the server's time, as the table keeps it
  std::string_view take{};  // if it is free, or its row is missing
  // If the row that was seen is still the expired one; may be empty.
  std::string_view take_over{};
  std::string_view renew{};
  std::string_view release{};
  std::string_view revoke{};
  std::string_view free_now{};
  // Columns of a look: what is left in microseconds, the owner, the row's id,
  // since when it is held in microseconds.
  std::string_view look{};
  // What every packet begins with; may be empty.
  std::string_view prelude{};
};

std::span<const ClassicForm> classic_forms();
const ClassicForm* classic_form(std::string_view strategy);  // nullptr: no such classic

// The statements of a form, complete but for what changes with each use.
class ClassicSql {
 public:
  ClassicSql(const ClassicForm& form, const MysqlOptions& options);

  struct Values {
    std::string_view key;
    std::string_view owner;
    base::Duration ttl{};
    std::string_view id = "0";
  };
  void take(std::string& packet, const Values& values) const;
  bool take_over(std::string& packet, const Values& values) const;  // false: there is no such step
  void renew(std::string& packet, const Values& values) const;
  void release(std::string& packet, const Values& values) const;
  void revoke(std::string& packet, const Values& values) const;
  void free_now(std::string& packet, const Values& values) const;
  void look(std::string& packet, const Values& values) const;
  void list(std::string& packet, std::string_view prefix) const;  // name, and the columns of a look

  // Who of us waits, for people alone.
  void note_waiter(std::string& packet, const Values& values, std::string_view request,
                   std::string_view who) const;
  void forget_waiter(std::string& packet, std::string_view request) const;
  void list_waiters(std::string& packet, std::string_view prefix) const;

  std::string create() const;  // statements separated by semicolons

 private:
  void append(std::string& packet, std::string_view statement, const Values& values) const;

  const ClassicForm& form_;
  std::map<std::string, std::string, std::less<>> holes_;
  std::string waiting_;
};

}  // namespace holdfast::engines
