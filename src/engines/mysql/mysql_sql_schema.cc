// What makes the tables.
#include "engines/mysql/mysql_sql.h"

namespace holdfast::engines {

std::vector<std::string> MysqlSql::schema() const {
  const std::string text = " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
  return {
      "CREATE TABLE IF NOT EXISTS " + schema_table_ +
          " (\n"
          "  id TINYINT NOT NULL PRIMARY KEY,\n"
          "  version INT NOT NULL\n"
          ") ENGINE=InnoDB",
      "CREATE TABLE IF NOT EXISTS " + table_ +
          " (\n"
          "  name VARBINARY(255) NOT NULL PRIMARY KEY,\n"
          "  holder VARCHAR(64)" +
          text +
          " NOT NULL,\n"
          "  host VARCHAR(64)" +
          text +
          " NOT NULL,\n"
          "  pid BIGINT NOT NULL,\n"
          "  held_since DATETIME(6) NOT NULL COMMENT 'UTC',\n"
          "  held_until DATETIME(6) NOT NULL COMMENT 'UTC; in the past: free',\n"
          "  waiting INT UNSIGNED NOT NULL COMMENT 'how many stand in the queue',\n"
          "  queue TEXT" +
          text +
          " NULL COMMENT 'who, first in line first',\n"
          "  token BIGINT UNSIGNED NOT NULL COMMENT 'the last one given out',\n"
          "  ttl_us BIGINT NOT NULL,\n"
          "  request_id BINARY(16) NOT NULL,\n"
          "  session_id BINARY(16) NOT NULL,\n"
          "  version BIGINT UNSIGNED NOT NULL,\n"
          "  mark BIGINT UNSIGNED NOT NULL,\n"
          "  rest MEDIUMBLOB NULL COMMENT 'several holders, or a queue'\n"
          ") ENGINE=InnoDB COMMENT='locks of holdfast'",
      "CREATE TABLE IF NOT EXISTS " + notes_ +
          " (\n"
          "  session_id BINARY(16) NOT NULL,\n"
          "  request_id BINARY(16) NOT NULL,\n"
          "  noted DATETIME(6) NOT NULL,\n"
          "  PRIMARY KEY (session_id, request_id)\n"
          ") ENGINE=InnoDB COMMENT='holdfast: revoked locks whose holders were not told yet'",
      "CREATE TABLE IF NOT EXISTS " + fences_ +
          " (\n"
          "  name VARBINARY(255) NOT NULL PRIMARY KEY,\n"
          "  token BIGINT UNSIGNED NOT NULL COMMENT 'of the oldest grant that may still commit'\n"
          ") ENGINE=InnoDB COMMENT='holdfast: locks that are checked in transactions'",
      "INSERT IGNORE INTO " + schema_table_ + " (id, version) VALUES (1, " +
          std::to_string(kMysqlSchemaVersion) + ")",
  };
}

}  // namespace holdfast::engines
