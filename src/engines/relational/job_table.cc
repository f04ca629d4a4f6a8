#include "engines/relational/job_table.h"

#include <algorithm>

namespace holdfast::engines {
namespace {

tl::unexpected<Error> invalid(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

Result<std::string> quote_one(std::string_view field, std::string_view name,
                              const QuotingRules& rules) {
  const std::string subject{field};
  if (name.empty()) {
    return invalid(subject + " is empty; give the name that it has in the database");
  }
  if (name.size() > rules.longest_name) {
    return invalid(subject + " is longer than any name in the database can be");
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (std::ranges::any_of(name, is_control)) {
    return invalid(subject + " has a control character in it");
  }
  std::string text(1, rules.quote);
  for (const char c : name) {
    text.append(c == rules.quote ? 2 : 1, c);
  }
  return text + rules.quote;
}

// "shop.jobs" is a table in a schema.
Result<std::string> quote_table(std::string_view name, const QuotingRules& rules) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) {
    return quote_one("table", name, rules);
  }
  auto schema = quote_one("table", name.substr(0, dot), rules);
  auto table = quote_one("table", name.substr(dot + 1), rules);
  if (!schema || !table) {
    return schema ? table : schema;
  }
  return *schema + "." + *table;
}

}  // namespace

Result<QuotedJobTable> quote(const JobTable& table, const QuotingRules& rules) {
  if (table.open == table.taken) {
    return invalid("open and taken are the same; a row that is taken must differ from an open one");
  }
  if (table.again_after && *table.again_after <= Duration::zero()) {
    return invalid("again_after must be longer than zero; leave it empty for never");
  }
  if (table.again_after && table.claimed_at.empty()) {
    return invalid("again_after needs claimed_at, the column for the time");
  }
  QuotedJobTable quoted;
  auto name = quote_table(table.table, rules);
  if (!name) {
    return tl::unexpected{std::move(name.error())};
  }
  quoted.table = std::move(*name);
  struct Column {
    std::string_view field;
    const std::string& name;
    std::string& quoted;
  };
  for (const Column& column : {Column{"key", table.key, quoted.key},
                               {"status", table.status, quoted.status},
                               {"claimed_by", table.claimed_by, quoted.claimed_by},
                               {"claimed_at", table.claimed_at, quoted.claimed_at}}) {
    if (column.name.empty() && column.field == "claimed_at") {
      continue;
    }
    auto one = quote_one(column.field, column.name, rules);
    if (!one) {
      return tl::unexpected{std::move(one.error())};
    }
    column.quoted = std::move(*one);
  }
  return quoted;
}

Result<void> check_count(std::uint32_t at_most) {
  if (at_most == 0 || at_most > kMaxJobsAtOnce) {
    return invalid("at_most must be from 1 to " + std::to_string(kMaxJobsAtOnce));
  }
  return {};
}

}  // namespace holdfast::engines
