#include "engines/mysql/mysql_errors.h"

namespace holdfast::engines {
namespace {

// Numbers of the protocol; see the server's error reference.
constexpr unsigned kDatabaseDenied = 1044;
constexpr unsigned kAccessDenied = 1045;
constexpr unsigned kNoDatabase = 1049;
constexpr unsigned kRecordChanged = 1020;
constexpr unsigned kTooManyConnections = 1040;
constexpr unsigned kNodeNotReady = 1047;
constexpr unsigned kTableDenied = 1142;
constexpr unsigned kColumnDenied = 1143;
constexpr unsigned kNoTable = 1146;
constexpr unsigned kLockWait = 1205;
constexpr unsigned kLockNoWait = 3572;
constexpr unsigned kDeadlock = 1213;
constexpr unsigned kTooManyOfUser = 1226;
constexpr unsigned kSpecificDenied = 1227;
constexpr unsigned kReadOnlyOption = 1290;
constexpr unsigned kUserTooManyConnections = 1203;
constexpr unsigned kInterrupted = 1317;
constexpr unsigned kUnknownColumn = 1054;
constexpr unsigned kBinlogUnsafe = 1665;
constexpr unsigned kAccessDeniedNoPassword = 1698;
constexpr unsigned kReadOnlyTransaction = 1792;
constexpr unsigned kReadOnlyMode = 1836;

std::string where(const MysqlOptions& options) {
  return options.socket.empty() ? options.host + ":" + std::to_string(options.port)
                                : options.socket;
}

}  // namespace

MysqlTrouble trouble_of(const MysqlError& error) {
  switch (error.code) {
    case kDeadlock:
    case kLockWait:
    case kLockNoWait:
    case kRecordChanged:
    case kInterrupted:  // somebody's KILL QUERY: the statement was undone
      return MysqlTrouble::collision;
    case kNoTable:
      return MysqlTrouble::no_table;
    case kNodeNotReady:
    case kTooManyConnections:
    case kUserTooManyConnections:
    case kTooManyOfUser:
    case kReadOnlyOption:
    case kReadOnlyTransaction:
    case kReadOnlyMode:
      return MysqlTrouble::not_ready;
    case kDatabaseDenied:
    case kAccessDenied:
    case kAccessDeniedNoPassword:
    case kNoDatabase:
      return MysqlTrouble::final;
    default:
      return error.disconnected ? MysqlTrouble::disconnected : MysqlTrouble::final;
  }
}

bool is_lock_wait(const MysqlError& error) {
  return error.code == kLockWait || error.code == kLockNoWait;
}

Error as_error(const MysqlError& error, const MysqlOptions& options) {
  const int native = static_cast<int>(error.code);
  const std::string said =
      error.code == 0 ? error.text : error.text + " (error " + std::to_string(native) + ")";
  switch (error.code) {
    case kDatabaseDenied:
    case kAccessDenied:
    case kAccessDeniedNoPassword:
    case kTableDenied:
    case kColumnDenied:
    case kSpecificDenied:
      return {ErrorCode::unauthorized,
              "the database at " + where(options) + " refuses this user: " + said, native};
    case kNoTable:
      return {ErrorCode::unavailable,
              "the tables of holdfast are not in this database; run: holdfast init", native};
    case kNoDatabase:
      return {ErrorCode::unavailable,
              "there is no such database at " + where(options) + ": " + said, native};
    case kReadOnlyOption:
    case kReadOnlyTransaction:
    case kReadOnlyMode:
      return {ErrorCode::unavailable,
              "the database at " + where(options) + " is read-only; use the primary: " + said,
              native};
    case kUnknownColumn:
      return {ErrorCode::unavailable,
              "the tables of holdfast are not of this version; run: holdfast init: " + said,
              native};
    case kBinlogUnsafe:
      return {ErrorCode::unavailable,
              "the server must not use binlog_format=STATEMENT; set it to ROW or MIXED: " + said,
              native};
    default:
      return {ErrorCode::unavailable, "the database at " + where(options) + ": " + said,
              error.code == 0 ? std::nullopt : std::optional{native}};
  }
}

}  // namespace holdfast::engines
