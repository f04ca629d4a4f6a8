#include "engines/mysql/mysql_session.h"

#include <fcntl.h>
#include <mariadb/errmsg.h>
#include <mariadb/mysql.h>
#include <mariadb/mysqld_error.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "base/fork.h"

namespace holdfast::engines {
namespace {

constexpr unsigned kNoWord = 0;  // our own failures have no code

// Everything that a server's configuration could change and that we rely on.
constexpr const char* kSettings =
    "SET NAMES utf8mb4, autocommit=1, completion_type=0, time_zone='+00:00', "
    "sql_mode='STRICT_ALL_TABLES', "
    "innodb_lock_wait_timeout=2, wait_timeout=3600";
constexpr const char* kIsolation = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

void use_library() {
  const base::ForksWait until_ready;  // it sets up OpenSSL
  static std::once_flag once;
  std::call_once(once, [] { mysql_library_init(0, nullptr, nullptr); });
}

int as_library_events(short ready) {
  return ((ready & (POLLIN | POLLHUP | POLLERR)) != 0 ? MYSQL_WAIT_READ : 0) |
         ((ready & POLLOUT) != 0 ? MYSQL_WAIT_WRITE : 0) |
         ((ready & POLLPRI) != 0 ? MYSQL_WAIT_EXCEPT : 0);
}

short as_poll_events(int wanted) {
  return static_cast<short>(((wanted & MYSQL_WAIT_READ) != 0 ? POLLIN : 0) |
                            ((wanted & MYSQL_WAIT_WRITE) != 0 ? POLLOUT : 0) |
                            ((wanted & MYSQL_WAIT_EXCEPT) != 0 ? POLLPRI : 0));
}

bool ends_connection(unsigned code) {
  constexpr unsigned kClientErrors = 2000;  // the library's own: 2000 to 2999
  constexpr unsigned kIdleTooLong = 4031;
  return (code >= kClientErrors && code < kClientErrors + 1000) || code == ER_SERVER_SHUTDOWN ||
         code == ER_CONNECTION_KILLED || code == ER_NEW_ABORTING_CONNECTION || code == kIdleTooLong;
}

void configure(MYSQL* mysql, const MysqlOptions& options) {
  const my_bool no = 0;
  const unsigned off = 0;
  mysql_options(mysql, MYSQL_OPT_NONBLOCK, nullptr);
  mysql_options(mysql, MYSQL_OPT_RECONNECT, &no);
  mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &off);
  mysql_options(mysql, MYSQL_INIT_COMMAND, kSettings);
  mysql_options(mysql, MYSQL_INIT_COMMAND, kIsolation);
  mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "holdfast");
  if (options.socket.empty()) {
    // Else the library takes "localhost" for a socket, wherever that is.
    const unsigned tcp = MYSQL_PROTOCOL_TCP;
    mysql_options(mysql, MYSQL_OPT_PROTOCOL, &tcp);
  }
  const my_bool verify = options.tls == MysqlOptions::Tls::verify ? 1 : 0;
  if (options.tls != MysqlOptions::Tls::off) {
    const my_bool yes = 1;
    mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &yes);
    if (!options.ca.empty()) {
      mysql_options(mysql, MYSQL_OPT_SSL_CA, options.ca.c_str());
    }
  }
  mysql_options(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
}

}  // namespace

void MysqlReply::Free::operator()(st_mysql_res* result) const noexcept {
  mysql_free_result(result);
}

MysqlReply::Cell MysqlReply::cell(std::size_t row, std::size_t column) const {
  const Row& found = rows_.at(row);
  const char* text = found.cells[column];
  return text == nullptr ? Cell{} : Cell{std::string_view{text, found.lengths.at(column)}};
}

bool MysqlSession::is_stale() const {
  if (!connected_) {
    return true;
  }
  // Between statements a server only speaks to say goodbye.
  char byte = 0;
  const auto got = recv(mysql_get_socket(mysql_), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void MysqlSession::start(Step step, base::Duration timeout) {
  step_ = step;
  entered_ = false;
  until_ = base::BootClock::now() + timeout;
  replies_.clear();
  error_.reset();
}

void MysqlSession::start_connect() {
  close();
  use_library();
  mysql_ = mysql_init(nullptr);
  start(Step::connect, options_.timeout);
  if (mysql_ == nullptr) {
    fail(kNoWord, "out of memory", true);
    return;
  }
  configure(mysql_, options_);
}

void MysqlSession::start_query(std::string packet, base::Duration timeout) {
  packet_ = std::move(packet);
  start(Step::query, timeout);
}

void MysqlSession::start_bulk(std::string statement, std::vector<MysqlColumn> rows,
                              base::Duration timeout) {
  bulk_.begin(mysql_, std::move(statement), std::move(rows));
  start(Step::bulk, timeout);
}

std::optional<engine::Conversation::Wait> MysqlSession::advance(short ready) {
  int events = as_library_events(ready);
  while (step_ != Step::idle) {
    if (entered_ && events == 0 && base::BootClock::now() >= until_) {
      fail(kNoWord, "no answer in time", true);
      break;
    }
    if (!entered_ || events != 0) {
      wanted_ = take_step(events);
      events = 0;
    }
    if (wanted_ != 0) {
      if (step_ == Step::connect) {
        fcntl(mysql_get_socket(mysql_), F_SETFD, FD_CLOEXEC);
      }
      return engine::Conversation::Wait{mysql_get_socket(mysql_), as_poll_events(wanted_), until_};
    }
    finish_step();
  }
  return std::nullopt;
}

// What the library waits for; 0: the step is done.
int MysqlSession::take_step(int events) {
  const bool first = !std::exchange(entered_, true);
  switch (step_) {
    case Step::connect: {
      const base::ForksWait until_here;  // the look-up of the host, and TLS
      const char* socket = options_.socket.empty() ? nullptr : options_.socket.c_str();
      const char* host = socket != nullptr ? "localhost" : options_.host.c_str();
      return first ? mysql_real_connect_start(&connect_result_, mysql_, host, options_.user.c_str(),
                                              options_.password.c_str(), options_.database.c_str(),
                                              options_.port, socket, CLIENT_MULTI_STATEMENTS)
                   : mysql_real_connect_cont(&connect_result_, mysql_, events);
    }
    case Step::query:
      return first ? mysql_real_query_start(&code_result_, mysql_, packet_.data(), packet_.size())
                   : mysql_real_query_cont(&code_result_, mysql_, events);
    case Step::store:
      return first ? mysql_store_result_start(&store_result_, mysql_)
                   : mysql_store_result_cont(&store_result_, mysql_, events);
    case Step::next:
      return first ? mysql_next_result_start(&code_result_, mysql_)
                   : mysql_next_result_cont(&code_result_, mysql_, events);
    case Step::bulk:
      return bulk_.take_step(first, events);
    case Step::idle:
      break;
  }
  return 0;
}

void MysqlSession::finish_step() {
  entered_ = false;
  switch (step_) {
    case Step::connect:
      connected_ = connect_result_ != nullptr;
      step_ = Step::idle;
      if (!connected_) {
        fail_from_library();
      }
      return;
    case Step::query:
    case Step::next:
      // Also -1, "no more results": it is asked for only where more were promised,
      // and said as well when the connection breaks in the middle of one.
      if (code_result_ != 0) {
        fail_from_library();
      } else if (mysql_field_count(mysql_) > 0) {
        step_ = Step::store;
      } else {
        take_reply();
      }
      return;
    case Step::store:
      if (store_result_ == nullptr) {
        fail_from_library();
      } else {
        take_reply();
      }
      return;
    case Step::bulk:
      step_ = bulk_.finish_step() ? Step::idle : Step::bulk;
      if (bulk_.failed()) {
        fail_from(bulk_.code(), bulk_.text());
      }
      return;
    case Step::idle:
      return;
  }
}

void MysqlSession::take_reply() {
  MysqlReply& reply = replies_.emplace_back();
  if (step_ == Step::store) {
    reply.result_.reset(std::exchange(store_result_, nullptr));
    const unsigned columns = mysql_num_fields(reply.result_.get());
    while (char** cells = mysql_fetch_row(reply.result_.get())) {
      const unsigned long* lengths = mysql_fetch_lengths(reply.result_.get());
      reply.rows_.push_back({cells, {lengths, lengths + columns}});
    }
  } else {
    reply.affected = mysql_affected_rows(mysql_);
    reply.insert_id = mysql_insert_id(mysql_);
  }
  step_ = mysql_more_results(mysql_) != 0 ? Step::next : Step::idle;
}

void MysqlSession::fail(unsigned code, std::string text, bool disconnected) {
  error_ = MysqlError{code, std::move(text), disconnected};
  step_ = Step::idle;
  if (disconnected) {
    close();
  }
}

void MysqlSession::fail_from_library() {
  fail_from(mysql_errno(mysql_), mysql_error(mysql_));
}

void MysqlSession::fail_from(unsigned code, std::string text) {
  fail(code, std::move(text), !connected_ || code == kNoWord || ends_connection(code));
}

std::string MysqlSession::server_version() const {
  const char* version = mysql_get_server_info(mysql_);
  return version == nullptr ? "" : version;
}

void MysqlSession::close() noexcept {
  if (mysql_ == nullptr) {
    return;
  }
  const bool was_connected = std::exchange(connected_, false);
  const bool busy = step_ != Step::idle || (error_ && error_->disconnected);
  step_ = Step::idle;
  if (busy || !was_connected) {
    // In the middle of something a goodbye would wait, or confuse the server.
    shutdown(mysql_get_socket(mysql_), SHUT_RDWR);
  }
  replies_.clear();
  mysql_close(std::exchange(mysql_, nullptr));
  bulk_.close();
}

void MysqlSession::forget() noexcept {
  mysql_ = nullptr;
  bulk_.forget();
  connected_ = false;
  step_ = Step::idle;
}

}  // namespace holdfast::engines
