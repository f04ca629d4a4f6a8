#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

// One parser each, fed with anything. A target is a file of this folder that
// defines fuzz_<its name>; its first line says which sources it needs, for
// tools/fuzz.py. What must hold of any input is required, and an input that
// breaks it ends the program.
namespace holdfast::fuzz {

inline void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
    std::abort();
  }
}

}  // namespace holdfast::fuzz
#define REQUIRE(condition) ::holdfast::fuzz::require((condition), #condition)

// For libFuzzer there is one target a program; the tests replay the corpus of
// all of them.
#ifdef HOLDFAST_LIBFUZZER
#define FUZZ_TARGET(name)                                                              \
  static void fuzz_##name(std::string_view input);                                     \
  extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);  \
  extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) { \
    fuzz_##name({reinterpret_cast<const char*>(data), size});                          \
    return 0;                                                                          \
  }                                                                                    \
  static void fuzz_##name(std::string_view input)
#else
#define FUZZ_TARGET(name)                   \
  void fuzz_##name(std::string_view input); \
  void fuzz_##name(std::string_view input)
#endif
