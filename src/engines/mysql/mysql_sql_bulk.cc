// Wishes as rows of a prepared statement: what MysqlSql::ask says, without its text.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engines/mysql/mysql_sql.h"
#include "engines/mysql/mysql_text.h"

namespace holdfast::engines {

// As in ask() the first assignment decides, and the later ones see its mark. The moment is the
// row's held_since, so that it is asked for once a row; what a row needs if there is none follows
// from its first values, so that one statement does for all kinds.
std::string MysqlSql::prepared_ask() const {
  const std::string first_token = std::to_string(core::kTokenStride);
  const std::string now = now_ ? std::string{"("} + kEpoch + "+INTERVAL ? MICROSECOND)"
                               : std::string{"UTC_TIMESTAMP(6)"};
  std::string text = "INSERT INTO " + table_ +
                     " (name,request_id,ttl_us,mark,version,waiting,session_id,holder,host,pid,"
                     "held_since,held_until,token) VALUES (?,?,?,?,1,0," +
                     us_.session + ',' + us_.label + ',' + us_.host + ',' + us_.pid + ',' + now +
                     ",IF(ttl_us>0,held_since+INTERVAL ttl_us MICROSECOND," + kEpoch +
                     "),IF(ttl_us>0,TIMESTAMPDIFF(MICROSECOND," + kEpoch + ",held_since)+" +
                     std::to_string(core::kTokenStride - 1) + ',' + first_token +
                     ")) ON DUPLICATE KEY UPDATE mark=IF(rest IS NULL AND IF(VALUES(ttl_us)>0,"
                     "held_until<=VALUES(held_since) AND token<" +
                     token_bound() +
                     ",request_id=VALUES(request_id) AND held_until>VALUES(held_since)),"
                     "VALUES(mark),mark)";
  for (const char* column : {"request_id", "session_id", "holder", "host", "pid"}) {
    text.append(",").append(column).append("=IF(mark=VALUES(mark),VALUES(").append(column);
    text.append("),").append(column).append(")");
  }
  for (const char* column : {"held_since", "ttl_us"}) {
    text.append(",").append(column).append("=IF(mark=VALUES(mark) AND VALUES(ttl_us)>0,VALUES(");
    text.append(column).append("),").append(column).append(")");
  }
  text += ",token=IF(mark=VALUES(mark) AND VALUES(ttl_us)>0,GREATEST(token+" + first_token +
          ",VALUES(token)),token),version=version+(mark=VALUES(mark)),held_until="
          "IF(mark=VALUES(mark),IF(VALUES(ttl_us)=0," +
          kEpoch + ",VALUES(held_since)+INTERVAL ttl_us MICROSECOND),held_until)";
  answer_with_verdicts(text);
  return text;
}

std::vector<MysqlColumn> MysqlSql::rows_to_ask(std::span<const Wish> wishes,
                                               std::uint64_t mark) const {
  std::vector<std::string> names;
  std::vector<std::string> requests;
  std::vector<std::int64_t> ttls;
  std::vector<std::uint64_t> marks;
  for (const Wish& each : wishes) {
    names.emplace_back(each.name);
    requests.emplace_back(each.request.bytes.begin(), each.request.bytes.end());
    ttls.push_back(each.kind == Wish::Kind::prolong
                       ? -1
                       : std::chrono::floor<std::chrono::microseconds>(each.ttl).count());
    marks.push_back(mark++);
  }
  std::vector<MysqlColumn> columns;
  columns.emplace_back(std::move(names));
  columns.emplace_back(std::move(requests));
  columns.emplace_back(std::move(ttls));
  columns.emplace_back(std::move(marks));
  if (now_) {
    const auto now = std::chrono::floor<std::chrono::microseconds>(now_().time_since_epoch());
    columns.emplace_back(std::vector<std::int64_t>(wishes.size(), now.count()));
  }
  return columns;
}

}  // namespace holdfast::engines
