#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"

namespace holdfast::test {

// An engine that speaks to a real store and is wrong in the way that `mistake`
// names; see wrong_engine.cc.
std::unique_ptr<engine::Engine> make_wrong(std::unique_ptr<engine::Engine> engine,
                                           std::string mistake);

}  // namespace holdfast::test
