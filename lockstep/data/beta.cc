#include "lockstep/data/beta.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lockstep/base/exact_math.h"

namespace lockstep::data {
namespace {

double above_zero(RandomStream& random) { return (static_cast<double>(random.bits()) + 1) * 0x1p-32; }  // (0, 1]

// Box and Muller's, as RandomStream::normal(), whose functions are the C library's.
double normal(RandomStream& random) {
  const double radius = std::sqrt(-2 * exact_log(above_zero(random)));
  return radius * exact_sine_cosine(2 * std::numbers::pi * static_cast<double>(random.bits()) * 0x1p-32).cosine;
}

// The logarithm of a number of Gamma(alpha), alpha >= 1: d·v with v = (1 + c·x)³ for a normal x, kept with the
// probability that makes it exact.
double log_gamma_from_one(double alpha, RandomStream& random) {
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(random), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, log_v = exact_log(v);
    if (exact_log(above_zero(random)) < x * x / 2 + d - d * v + d * log_v) return exact_log(d) + log_v;
  }
}

// Below 1, a number of Gamma(alpha) is one of Gamma(alpha + 1) times U^(1/alpha).
double log_gamma(double alpha, RandomStream& random) {
  if (alpha >= 1) return log_gamma_from_one(alpha, random);
  const double above = log_gamma_from_one(alpha + 1, random);
  return above + exact_log(above_zero(random)) / alpha;
}

}  // namespace

double beta_variate(double alpha, RandomStream& random) {
  constexpr double kMost = 700;  // exact_exp's
  const double first = log_gamma(alpha, random), second = log_gamma(alpha, random);
  return 1 / (1 + exact_exp(std::clamp(second - first, -kMost + 1, kMost - 1)));
}

}  // namespace lockstep::data
