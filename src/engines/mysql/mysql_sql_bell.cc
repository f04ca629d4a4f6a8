// The doorbell's statements.
#include <utility>

#include "engines/mysql/mysql_sql.h"
#include "engines/mysql/mysql_text.h"

namespace holdfast::engines {
namespace {

// A lock of the server's own that our other connections keep shut.
std::string door_of(const core::SessionId& session) {
  return "'holdfast.door." + session.hex() + "'";
}

}  // namespace

void MysqlSql::shut_door(std::string& packet) const {
  begin(packet);
  packet += "DO GET_LOCK(" + door_of(session_) + ",0)";
}

// In two statements, because one that sleeps while it has a table open keeps
// everybody from altering that table. In one packet: who rings an idle connection
// is not heard.
//
// All who SLEEP() share one mutex of the server. A MariaDB that interrupts one of them while
// another has that mutex waits two seconds for it, and everybody with it, because the one who
// was interrupted now has the mutex and waits for what the interrupter has. Those who wait for
// a user-level lock have a mutex each. If the door is open, nobody is there to keep it shut.
void MysqlSql::sleep(std::string& packet, std::chrono::seconds time, std::span<const Known> known,
                     Couch couch) const {
  begin(packet);
  packet += "SET @holdfast_doze=(SELECT COUNT(*) FROM " + notes_ + " WHERE session_id=";
  packet += us_.session;
  packet += ')';
  if (!known.empty()) {
    packet += "+(SELECT COUNT(*) FROM " + table_ + " FORCE INDEX (PRIMARY) WHERE ";
    bool first = true;
    for (const Known& each : known) {
      packet += std::exchange(first, false) ? "(name=" : " OR (name=";
      append_hex(packet, each.name);
      packet += " AND version<>" + std::to_string(each.version) + ")";
    }
    packet += " LOCK IN SHARE MODE)";  // who passes a lock on rings before the commit
  }
  const std::string seconds = std::to_string(time.count());
  const std::string door = door_of(session_);
  packet += couch == Couch::sleep
                ? ";SET @holdfast_doze=SLEEP(IF(@holdfast_doze>0,0," + seconds + "))"
                : ";SET @holdfast_doze=IF(@holdfast_doze>0,0,IF(GET_LOCK(" + door + "," + seconds +
                      "),RELEASE_LOCK(" + door + ")*0+SLEEP(" + seconds + "),0))";
}

void MysqlSql::note(std::string& packet, std::span<const core::Wake> wakes) const {
  begin(packet);
  packet += "INSERT IGNORE INTO " + notes_ + " (session_id,request_id,noted) VALUES ";
  append_list(packet, wakes, [&](const core::Wake& wake) {
    packet += '(';
    append_hex(packet, wake.session);
    packet += ',';
    append_hex(packet, wake.id);
    packet += "," + now() + ")";
  });
}

void MysqlSql::read_notes(std::string& packet) const {
  begin(packet);
  packet += "SELECT request_id FROM " + notes_ + " WHERE session_id=";
  packet += us_.session;
}

void MysqlSql::drop_notes(std::string& packet) const {
  begin(packet);
  packet += "DELETE FROM " + notes_ + " WHERE session_id=";
  packet += us_.session;
}

void MysqlSql::drop_old_notes(std::string& packet) const {
  begin(packet);
  packet += "DELETE FROM " + notes_ + " WHERE noted<" + now() + "-INTERVAL 1 DAY LIMIT 1000";
}

namespace {

// A lock of the server's own that a doorbell's connection keeps: who has it is looked up
// in an instant, where the list of processes is written anew for each who asks.
std::string bell_of(const core::SessionId& session) {
  return "'holdfast.bell." + session.hex() + "'";
}

// Runs the text that is the value of an expression, in so many statements.
std::size_t execute(std::string& packet, const std::string& expression, bool on_mariadb) {
  begin(packet);
  packet += on_mariadb ? "EXECUTE IMMEDIATE " + expression
                       : "SET @holdfast_text=" + expression +
                             ";PREPARE holdfast_text FROM @holdfast_text;EXECUTE holdfast_text";
  return on_mariadb ? 1 : 3;
}

std::size_t kill(std::string& packet, const std::string& what, bool on_mariadb) {
  return execute(packet, "IF(@holdfast_bell IS NULL,'DO 0',CONCAT('" + what + " ',@holdfast_bell))",
                 on_mariadb);
}

}  // namespace

std::string MysqlSql::bell_in_use(const std::string& session) {
  return "IS_USED_LOCK(CONCAT('holdfast.bell.',LOWER(HEX(" + session + "))))";
}

std::size_t MysqlSql::ring(std::string& packet, bool on_mariadb) {
  return kill(packet, "KILL QUERY", on_mariadb);
}

void MysqlSql::hang(std::string& packet, bool on_mariadb) const {
  const std::string bell = bell_of(session_);
  begin(packet);
  packet += "SET @holdfast_bell=IF(GET_LOCK(" + bell + ",0),NULL,IS_USED_LOCK(" + bell + "))";
  kill(packet, "KILL", on_mariadb);
  packet += ";DO IF(@holdfast_bell IS NULL,1,GET_LOCK(" + bell + ",1))";
}

void MysqlSql::as_one(std::string& packet, bool on_mariadb) {
  if (on_mariadb) {
    packet = "BEGIN NOT ATOMIC " + packet + ";END";
  }
}

// If the sleep ends by itself in between, another statement of that same doorbell is
// interrupted instead: it looks again.
void MysqlSql::wake(std::string& packet, const core::SessionId& session, bool on_mariadb) {
  begin(packet);
  packet += "SET @holdfast_bell=IS_USED_LOCK(" + bell_of(session) + ")";
  ring(packet, on_mariadb);
}

}  // namespace holdfast::engines
