#pragma once

#include <holdfast/inspect.h>
#include <string>
#include <vector>

#include "engines/zookeeper/zookeeper_session.h"

namespace holdfast::engines {

// What is known of that version, alone or in an ensemble.
Finding zookeeper_version(const std::string& version, bool one_of_several);
std::vector<Finding> zookeeper_findings(ZookeeperSession& session, const ZookeeperOptions& options);

}  // namespace holdfast::engines
