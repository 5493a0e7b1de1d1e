// Histograms as TensorBoard shows them: buckets whose limits grow by a tenth, from 1e-12 on, on both sides of zero.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::track {

struct Histogram {
  double min = 0, max = 0, sum = 0, sum_of_squares = 0;
  int64_t count = 0;
  std::vector<double> limits;  // the upper end of each bucket, ascending; the first one begins at min
  std::vector<double> counts;  // of the values in each
};

// One thread.
class HistogramCounter {
 public:
  HistogramCounter();

  // Adds a value, which is finite.
  void add(double value) {
    if (count_++ == 0) min_ = max_ = value;
    min_ = value < min_ ? value : min_;
    max_ = value > max_ ? value : max_;
    sum_ += value;
    sum_of_squares_ += value * value;
    ++(value < 0 ? below_ : above_)[bucket_of(std::abs(value))];
  }
  Histogram histogram() const;

 private:
  // The number of limits that are at most `size`.
  size_t bucket_of(double size) const {
    size_t bucket = scale_.first[std::bit_cast<uint64_t>(size) >> kTableShift];
    while (bucket < scale_.limits.size() && scale_.limits[bucket] <= size) ++bucket;
    return bucket;
  }

  // The limits above zero; and for the sign, exponent and first five binary places of a size the least bucket_of() of
  // those that begin so. No more than one limit lies among those.
  static constexpr int kTableShift = 47;
  struct Scale {
    std::vector<double> limits;
    std::vector<uint16_t> first;
  };
  static Scale make_scale();
  static const Scale& scale();

  const Scale& scale_;
  int64_t count_ = 0;
  double min_ = 0, max_ = 0, sum_ = 0, sum_of_squares_ = 0;
  std::vector<int64_t> below_, above_;  // zero: by the number of limits that are no larger
};

}  // namespace lockstep::track
