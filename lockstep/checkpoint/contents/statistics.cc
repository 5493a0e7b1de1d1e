#include "lockstep/checkpoint/contents/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/checkpoint/contents/numbers.h"

namespace lockstep::checkpoint {
namespace {

// Count, mean and the sum of squared distances from it: a part's are computed in two passes, and parts are joined by
// the rule of Chan, Golub and LeVeque, which loses nothing where the mean is large beside the deviation.
struct Moments {
  long double count = 0, mean = 0, squares = 0;

  void join(const Moments& part) {
    if (part.count == 0) return;
    const long double sum = count + part.count, distance = part.mean - mean;
    squares += part.squares + distance * distance * (count * part.count / sum);
    mean += distance * (part.count / sum);
    count = sum;
  }
};

Moments moments_of(const Numbers& numbers, Statistics& statistics) {
  Moments part;
  long double sum = 0;
  for (int64_t i = 0; i < numbers.count(); ++i) {
    const long double number = numbers.magnitude(i);
    if (!std::isfinite(number)) {
      ++(std::isnan(number) ? statistics.nan : statistics.inf);
      continue;
    }
    const bool is_first = statistics.finite++ == 0;
    statistics.min = is_first ? number : std::min(statistics.min, number);
    statistics.max = is_first ? number : std::max(statistics.max, number);
    sum += number;
    ++part.count;
  }
  if (part.count == 0) return part;
  part.mean = sum / part.count;
  for (int64_t i = 0; i < numbers.count(); ++i) {
    const long double distance = numbers.magnitude(i) - part.mean;
    if (std::isfinite(distance)) part.squares += distance * distance;
  }
  return part;
}

}  // namespace

Statistics statistics_of(const at::Tensor& tensor) {
  const at::Tensor flat = flattened(tensor);
  Statistics statistics;
  Moments all;
  for (int64_t begin = 0; begin < flat.numel(); begin += Numbers::kAtOnce) {
    const Numbers numbers(flat, begin, std::min(Numbers::kAtOnce, flat.numel() - begin));
    all.join(moments_of(numbers, statistics));
  }
  statistics.mean = static_cast<double>(all.mean);
  statistics.deviation = all.count < 2 ? std::numeric_limits<double>::quiet_NaN()
                                       : static_cast<double>(std::sqrt(all.squares / (all.count - 1)));
  return statistics;
}

}  // namespace lockstep::checkpoint
