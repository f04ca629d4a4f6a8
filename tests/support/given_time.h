#pragma once

#include <functional>

namespace holdfast::test {

// For what holds only where the machine keeps up with a ttl: runs the body
// again, with four and sixteen times as long, if it failed. What is broken
// fails at any length.
void given_time(
    const std::function<void(int scale)>& body, const std::function<void()>& before_again = [] {});

}  // namespace holdfast::test
