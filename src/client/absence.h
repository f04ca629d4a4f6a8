#pragma once

#include <algorithm>
#include <optional>

#include "base/time.h"

namespace holdfast::client {

// How long nobody led, to go by looks now and then, each of which tells since
// when whoever leads then does. Pure.
class Absence {
 public:
  // Somebody leads at `now`, and does since `since`.
  void saw_leader(base::Time since, base::Time now) noexcept {
    if (last_) {
      const base::Duration gap = std::max<base::Duration>(since - last_->at, {});
      (last_->led ? unknown_ : total_) += gap;
    }
    last_ = {now, true};
  }

  // Nobody leads at `now`.
  void saw_nobody(base::Time now) noexcept {
    if (last_) {
      (last_->led ? unknown_ : total_) += now - last_->at;
    }
    last_ = {now, false};
  }

  // Between two looks of which the first found nobody, up to the beginning of
  // the next leader.
  base::Duration total() const noexcept { return total_; }
  // Between a look that found a leader and the beginning of another, or a look
  // that found nobody: some of it may belong to the total.
  base::Duration unknown() const noexcept { return unknown_; }

 private:
  struct Look {
    base::Time at;
    bool led = false;
  };
  std::optional<Look> last_;
  base::Duration total_{};
  base::Duration unknown_{};
};

}  // namespace holdfast::client
