#include "lockstep/base/exact_math.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace lockstep {
namespace {

// ln 2 and π/2, each as a sum of two doubles. The upper one has zeros at its end, so that its product with a small
// whole number is exact.
constexpr double kLn2Upper = 0x1.62e42fee00000p-1, kLn2Lower = 0x1.a39ef35793c76p-33;
constexpr double kHalfPiUpper = 0x1.921fb54400000p+0, kHalfPiLower = 0x1.0b4611a626331p-34;

// The nearest whole number, ties to even: by adding and subtracting 1.5 · 2^52. |x| < 2^51.
double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

}  // namespace

// x = m · 2^e with m from √½ to √2; ln m = 2 artanh(s) with s = (m - 1) / (m + 1), whose series has s² < 0.0295.
double exact_log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  if (exponent == -1023) return exact_log(x * 0x1p54) - 54 * (kLn2Upper + kLn2Lower);  // a denormal number
  double m = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (m > 1.4142135623730951) {
    m /= 2;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * square;
  return exponent * kLn2Upper + (exponent * kLn2Lower + (2 * s + 2 * s * sum));
}

// x = k · ln 2 + r with |r| < 0.35, whose series ends after r^14.
double exact_exp(double x) {
  const double k = nearest(x / (kLn2Upper + kLn2Lower));
  const double r = (x - k * kLn2Upper) - k * kLn2Lower;
  double sum = 1;
  for (int n = 14; n >= 1; --n) sum = 1 + sum * r / n;
  // Two steps, for 2^k may be no normal number while the result is one.
  const auto power = [](int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52); };
  const int whole = static_cast<int>(k), half = whole / 2;
  return sum * power(half) * power(whole - half);
}

// x = k · π/2 + r with |r| < 0.79; the series of both, and by k modulo 4 the quarter of the circle.
SineCosine exact_sine_cosine(double radians) {
  const double k = nearest(radians / (kHalfPiUpper + kHalfPiLower));
  const double r = (radians - k * kHalfPiUpper) - k * kHalfPiLower, square = r * r;
  double sine = 1, cosine = 1;
  for (int n = 18; n >= 2; n -= 2) {
    sine = 1 - sine * square / (n * (n + 1));
    cosine = 1 - cosine * square / (n * (n - 1));
  }
  sine *= r;
  switch (static_cast<int64_t>(k) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace lockstep
