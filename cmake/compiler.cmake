# Warnings as errors for our own targets, never for what includes us.
function(holdfast_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
    -Wold-style-cast -Woverloaded-virtual -Wzero-as-null-pointer-constant
    -Wdeprecated-copy-dtor -Werror)
endfunction()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

if(HOLDFAST_SANITIZE)
  # -O1, and without two checks: null pointers are the address sanitizer's find
  # as well, and misaligned ones are rare here, but both together make the
  # compiler take three times as long.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  add_compile_options(-fsanitize=${HOLDFAST_SANITIZE} -fno-sanitize=null,alignment
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HOLDFAST_SANITIZE})
endif()

if(HOLDFAST_COVERAGE)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O0 -g1")
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

find_program(HOLDFAST_CCACHE ccache)
if(HOLDFAST_CCACHE)
  # What one checkout has compiled serves the next one as well.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${HOLDFAST_CCACHE})
endif()
