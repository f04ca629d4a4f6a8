#pragma once

#include <optional>

#include "base/time.h"

namespace holdfast::client {

// How long nobody led, to go by looks now and then. Pure.
class Absence {
 public:
  void saw(bool somebody_leads, base::Time now) noexcept {
    if (since_) {
      total_ += now - *since_;
    }
    since_ = somebody_leads ? std::nullopt : std::optional{now};
  }
  // What comes now is unknown until the next look.
  void forget() noexcept { since_.reset(); }

  base::Duration total() const noexcept { return total_; }

 private:
  std::optional<base::Time> since_;
  base::Duration total_{};
};

}  // namespace holdfast::client
