#pragma once

#include "engine/registry.h"

namespace holdfast::engines {

// zookeeper://h1,h2,h3/root: locks in the queues of an ensemble, beside those
// who use Curator or kazoo there.
engine::Registration zookeeper_registration();

}  // namespace holdfast::engines
