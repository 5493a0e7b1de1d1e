#include "lockstep/track/histogram.h"

#include <limits>

namespace lockstep::track {
namespace {

constexpr double kFirst = 1e-12, kLast = 1e20, kGrowth = 1.1;

// Adds a bucket. Of empty ones side by side one stays.
void append(Histogram& to, double limit, int64_t count) {
  if (count == 0 && !to.counts.empty() && to.counts.back() == 0) {
    to.limits.back() = limit;
  } else if (count > 0 || !to.counts.empty()) {
    to.limits.push_back(limit);
    to.counts.push_back(static_cast<double>(count));
  }
}

}  // namespace

HistogramCounter::Scale HistogramCounter::make_scale() {
  Scale made;
  for (double limit = kFirst; limit < kLast; limit *= kGrowth) made.limits.push_back(limit);
  uint16_t below = 0;
  for (uint64_t front = 0; front < uint64_t{1} << (63 - kTableShift); ++front) {
    const auto least = std::bit_cast<double>(front << kTableShift);
    while (below < made.limits.size() && made.limits[below] <= least) ++below;
    made.first.push_back(below);
  }
  return made;
}

const HistogramCounter::Scale& HistogramCounter::scale() {
  static const Scale made = make_scale();
  return made;
}

HistogramCounter::HistogramCounter()
    : scale_(scale()), below_(scale_.limits.size() + 1), above_(scale_.limits.size() + 1) {}

Histogram HistogramCounter::histogram() const {
  Histogram made{.min = min_, .max = max_, .sum = sum_, .sum_of_squares = sum_of_squares_, .count = count_};
  const std::vector<double>& limits = scale_.limits;
  for (size_t bucket = below_.size(); bucket-- > 0;) {
    append(made, bucket == 0 ? 0 : -limits[bucket - 1], below_[bucket]);
  }
  for (size_t bucket = 0; bucket < above_.size(); ++bucket) {
    append(made, bucket < limits.size() ? limits[bucket] : std::numeric_limits<double>::max(), above_[bucket]);
  }
  if (!made.counts.empty() && made.counts.back() == 0) {
    made.counts.pop_back();
    made.limits.pop_back();
  }
  return made;
}

}  // namespace lockstep::track
