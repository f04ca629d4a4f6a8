#pragma once

#include <holdfast/inspect.h>
#include <vector>

#include "engines/zookeeper/zookeeper_session.h"

namespace holdfast::engines {

std::vector<Finding> zookeeper_findings(ZookeeperSession& session, const ZookeeperOptions& options);

}  // namespace holdfast::engines
