#include "lockstep/image/axis.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lockstep::image {
namespace {

constexpr size_t kReadBeyond = 64;  // weights

struct Filter1d {
  Filter1d(int in, int out) : scale(static_cast<double>(in) / out), support(std::max(scale, 1.0)) {}
  double center(int x) const { return (x + 0.5) * scale; }
  double scale, support;
};

// Rounds each weight to the nearest number. Of many small weights the rounding is carried to the next one, for their
// sum would go wrong.
void round_weights(const std::vector<double>& exact, int16_t* rounded) {
  constexpr size_t kFew = 64;
  constexpr double kOne = 1 << kWeightBits;
  double carried = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double weight = exact[i] * kOne + carried;
    const double whole = std::min(std::floor(weight + 0.5), kOne - 1);
    rounded[i] = static_cast<int16_t>(whole);
    if (exact.size() > kFew) carried = weight - whole;
  }
}

}  // namespace

Taps taps_of(int in, int out, int x) {
  const Filter1d filter(in, out);
  const double center = filter.center(x);
  return {std::max(0, static_cast<int>(center - filter.support + 0.5)),
          std::min(in, static_cast<int>(center + filter.support + 0.5))};
}

Axis make_axis(int in, int out, Taps wanted) {
  const Filter1d filter(in, out);
  const double inverse = 1.0 / filter.support;
  const int most = static_cast<int>(std::ceil(filter.support)) * 2 + 1;
  Axis axis;
  axis.taps = (most + kTapGroup - 1) / kTapGroup * kTapGroup;
  axis.begin = wanted.first;
  const auto n = static_cast<size_t>(wanted.last - wanted.first);
  axis.first.resize(n);
  axis.count.resize(n);
  axis.weights.resize(n * static_cast<size_t>(axis.taps) + kReadBeyond);
  std::vector<double> exact;
  for (int x = wanted.first; x < wanted.last; ++x) {
    const auto place = static_cast<size_t>(x - wanted.first);
    const Taps taps = taps_of(in, out, x);
    const double center = filter.center(x);
    exact.clear();
    double sum = 0;
    for (int i = 0; i < taps.last - taps.first; ++i) {
      const double weight = std::max(0.0, 1 - std::abs((i + taps.first - center + 0.5) * inverse));
      exact.push_back(weight);
      sum += weight;
    }
    for (double& weight : exact) weight /= sum;
    int16_t* const weights = axis.weights.data() + place * static_cast<size_t>(axis.taps);
    round_weights(exact, weights);
    int count = taps.last - taps.first;
    while (count > 1 && weights[count - 1] == 0) --count;
    axis.first[place] = taps.first;
    axis.count[place] = count;
  }
  return axis;
}

}  // namespace lockstep::image
