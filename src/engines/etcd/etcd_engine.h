#pragma once

#include "engine/registry.h"

namespace holdfast::engines {

// etcd://h1,h2,h3/prefix: locks in the queues of a cluster, beside those who use
// `etcdctl lock` or etcd's own concurrency package there.
engine::Registration etcd_registration();

}  // namespace holdfast::engines
