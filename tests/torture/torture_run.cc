#include "torture/torture_run.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <fstream>

namespace holdfast::test {
namespace {

namespace bj = boost::json;

std::vector<std::string> words(const std::string& url, const TempDir& dir,
                               const std::vector<std::string>& more) {
  std::vector<std::string> all{HOLDFAST_COMMAND,
                               "torture",
                               "--url",
                               url,
                               "--json",
                               "--timeline",
                               (dir / "timeline.html").string()};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TortureRun::TortureRun(const std::string& url, const std::vector<std::string>& more)
    : process_{Process::start(words(url, dir_, more))} {}

std::set<std::string> TortureRun::violated() {
  const auto status = process_.wait(std::chrono::seconds{240});
  text_ = process_.out() + process_.err();
  EXPECT_TRUE(status == 0 || status == 1) << text_;
  std::set<std::string> properties;
  if (status != 0 && status != 1) {
    return properties;
  }
  const bj::value report = bj::parse(process_.out());
  granted_ = report.at("granted").to_number<std::int64_t>();
  if (status == 1) {
    for (const bj::value& violation : report.at("violations").as_array()) {
      properties.emplace(violation.at("property").as_string());
    }
    std::ifstream page{dir_ / "timeline.html"};
    EXPECT_NE(std::string(std::istreambuf_iterator<char>{page}, {}).find("<svg"),
              std::string::npos);
  }
  return properties;
}

}  // namespace holdfast::test
