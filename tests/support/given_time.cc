#include "support/given_time.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <exception>
#include <iostream>
#include <string>

namespace holdfast::test {
namespace {

// What went wrong, which nobody else hears of.
std::string complaints(const std::function<void()>& body) {
  ::testing::TestPartResultArray results;
  std::string said;
  {
    using Reporter = ::testing::ScopedFakeTestPartResultReporter;
    const Reporter reporter{Reporter::INTERCEPT_ALL_THREADS, &results};
    try {
      body();
    } catch (const std::exception& error) {
      said.append(error.what()).append("\n");
    }
  }
  for (int i = 0; i < results.size(); ++i) {
    const auto& result = results.GetTestPartResult(i);
    if (result.failed()) said.append(result.message()).append("\n");
  }
  return said;
}

}  // namespace

void given_time(const std::function<void(int)>& body, const std::function<void()>& before_again) {
  for (const int scale : {1, 4}) {
    const std::string said = complaints([&] { body(scale); });
    if (said.empty()) return;
    std::cerr << "again, with more time, because of:\n" << said;
    before_again();
  }
  body(16);
}

}  // namespace holdfast::test
