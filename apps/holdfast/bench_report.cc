#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <iostream>
#include <sstream>

#include "bench_scenarios.h"
#include "table.h"

namespace holdfast::command::bench {
namespace {

std::string in_words(double value) {
  std::ostringstream text;
  text.precision(std::abs(value) >= 100 || value == std::floor(value) ? 0 : 2);
  text << std::fixed << value;
  return text.str();
}

}  // namespace

double percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) {
    return 0;
  }
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

Figures latencies(std::vector<double> ns, const std::string& what) {
  std::sort(ns.begin(), ns.end());
  return {{"p50_us", what + " p50, µs", percentile(ns, 0.5) / 1e3},
          {"p99_us", what + " p99, µs", percentile(ns, 0.99) / 1e3}};
}

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>{duration}.count();
}

void print_json(const std::vector<Row>& rows, const std::string& store, Duration duration) {
  namespace bj = boost::json;
  bj::array list;
  for (const Row& row : rows) {
    bj::object object;
    object["scenario"] = row.scenario->name;
    if (!row.skipped.empty()) {
      object["skipped"] = row.skipped;
    }
    for (const Figure& figure : row.figures) {
      object[figure.key] = figure.value;
    }
    list.push_back(std::move(object));
  }
  std::cout << bj::serialize(bj::object{{"store", store},
                                        {"seconds", seconds(duration)},
                                        {"scenarios", std::move(list)}})
            << '\n';
}

void print_table(const std::vector<Row>& rows) {
  Table table{{"SCENARIO", "FIGURE", "VALUE"}};
  for (const Row& row : rows) {
    if (!row.skipped.empty()) {
      table.add(
          {{std::string{row.scenario->name}, Colour::bold}, {row.skipped, Colour::dim}, {"-"}});
    }
    for (std::size_t i = 0; i < row.figures.size(); ++i) {
      const Figure& figure = row.figures[i];
      table.add({{i == 0 ? std::string{row.scenario->name} : "", Colour::bold},
                 {figure.label},
                 {in_words(figure.value)}});
    }
  }
  table.print(std::cout, Paint{});
}

}  // namespace holdfast::command::bench
