#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

// In SetUp() or in a test: `missing` is empty, or says what is not installed.
// On a developer's machine the test is then skipped; under CI it fails, where a
// silent skip would hide that something is not tested at all.
#define HOLDFAST_SKIP_IF_MISSING(missing)                           \
  do {                                                              \
    if (const auto what_is_missing = (missing)) {                   \
      if (std::getenv("CI") != nullptr) FAIL() << *what_is_missing; \
      GTEST_SKIP() << *what_is_missing;                             \
    }                                                               \
  } while (false)
