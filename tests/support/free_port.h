#pragma once

#include <cstdint>

namespace holdfast::test {

// A port on loopback that nobody uses, and that is nobody else's until this
// process ends: a server may come to it late, go, and come back.
std::uint16_t free_port();

}  // namespace holdfast::test
