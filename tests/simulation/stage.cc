#include "simulation/stage.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>

namespace holdfast::sim {
namespace {

constexpr std::size_t kKept = 8;

std::string in_milliseconds(Time when) {
  std::ostringstream text;
  const std::chrono::duration<double, std::milli> since = when - kStart;
  text << std::fixed << std::setprecision(3) << since.count() << " ms";
  return text.str();
}

}  // namespace

void Timeline::at(Time when, std::function<void()> what) {
  events_.push_back({std::max(when, now_), order_++, std::move(what)});
  std::push_heap(events_.begin(), events_.end(), &Timeline::later);
}

bool Timeline::step() {
  if (events_.empty()) {
    return false;
  }
  std::pop_heap(events_.begin(), events_.end(), &Timeline::later);
  const Event event = std::move(events_.back());
  events_.pop_back();
  now_ = event.when;
  ++steps_;
  event.what();
  return true;
}

Time LocalClock::at(Time truth) const noexcept {
  const Duration::rep since = truth.time_since_epoch().count();
  constexpr Duration::rep kMillion = 1'000'000;
  const Duration::rep drift =
      since / kMillion * drift_ppm_ + since % kMillion * drift_ppm_ / kMillion;
  return Time{offset_ + Duration{since + drift}};
}

Time LocalClock::truth_of(Time local) const noexcept {
  if (local == base::kNever || local == Time::min()) {
    return local;
  }
  const auto since = static_cast<long double>((local.time_since_epoch() - offset_).count());
  Time guess{Duration{static_cast<Duration::rep>(since / (1.0L + drift_ppm_ * 1e-6L))}};
  while (at(guess) >= local) {
    guess -= Duration{1};
  }
  while (at(guess) < local) {
    guess += Duration{1};
  }
  return guess;
}

void Verdict::add(std::string_view property, std::string text, Time at) {
  properties_.emplace(property);
  if (count_++ < kKept) {
    violations_.push_back(
        {std::string{property}, "at " + in_milliseconds(at) + ": " + std::move(text)});
  }
}

void Stage::begin_line(std::string_view who) {
  *trace << std::setw(14) << in_milliseconds(now()) << "  " << std::left << std::setw(9) << who
         << std::right << " ";
}

void Stage::end_line() {
  *trace << '\n';
}

}  // namespace holdfast::sim
