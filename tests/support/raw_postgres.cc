#include "support/raw_postgres.h"

#include <libpq-fe.h>

#include <stdexcept>

namespace holdfast::test {

RawPostgres::RawPostgres(const std::string& conninfo) : connection_{PQconnectdb(conninfo.c_str())} {
  if (PQstatus(connection_) != CONNECTION_OK) {
    const std::string why = PQerrorMessage(connection_);
    PQfinish(connection_);
    throw std::runtime_error{why};
  }
  PQsetNoticeReceiver(
      connection_, [](void*, const PGresult*) {}, nullptr);
}

RawPostgres::~RawPostgres() {
  PQfinish(connection_);
}

std::vector<RawPostgres::Row> RawPostgres::rows(const std::string& sql) {
  PGresult* result = PQexec(connection_, sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    const std::string why = PQresultErrorMessage(result);
    PQclear(result);
    throw std::runtime_error{sql + ": " + why};
  }
  std::vector<Row> all(static_cast<std::size_t>(PQntuples(result)));
  for (int row = 0; row < PQntuples(result); ++row) {
    for (int column = 0; column < PQnfields(result); ++column) {
      all[static_cast<std::size_t>(row)].emplace_back(PQgetvalue(result, row, column));
    }
  }
  PQclear(result);
  return all;
}

}  // namespace holdfast::test
