#pragma once

#include "engine/registry.h"

namespace holdfast::engines {

// memory: and memory:NAME. Locks between the threads and Clients of one
// process, gone with the last of them: the reference, and for unit tests.
engine::Registration memory_registration();

}  // namespace holdfast::engines
