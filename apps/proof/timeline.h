#pragma once

#include <string>
#include <vector>

#include "proof/checker.h"
#include "proof/history.h"

namespace holdfast::proof {

// One HTML page, readable without anything else: for each violation the calls
// that it is about as bars over time, the faults behind them, and the events
// as a list.
std::string timeline_page(const std::vector<Violation>& violations, const History& history,
                          const std::string& title);

}  // namespace holdfast::proof
