// Random numbers of the Beta distribution, with equal bits on every machine.
#pragma once

#include "lockstep/base/philox.h"

namespace lockstep::data {

// Below 1.3e-307 the logarithms of both Gamma numbers may be -infinity, whose difference is no number. At this bound a
// variate is 0 or 1 long since.
inline constexpr double kLeastAlpha = 1e-300;

// A number of Beta(alpha, alpha), from 0 to 1. alpha >= kLeastAlpha and finite. Takes as many numbers of `random` as it
// needs.
//
// The algorithm: G / (G + H) of two numbers of Gamma(alpha), each by rejection (Marsaglia and Tsang, "A simple method
// for generating gamma variables", 2000). Below 1 a Gamma number may be too small for a double, so that logarithms are
// kept. All of it is made of +, -, ×, ÷, square roots and exact_math.h, and of no function of the C library.
double beta_variate(double alpha, RandomStream& random);

}  // namespace lockstep::data
