// Functions made of +, -, ×, ÷ and square roots alone: equal bits on every IEEE machine. The C library's own functions
// choose fused instructions where the CPU has them, and so differ between machines.
#pragma once

namespace lockstep {

// Relative errors below 1e-14, or absolute ones where the value is near 0.
double exact_log(double x);  // x > 0 and finite
double exact_exp(double x);  // -700 < x < 700

struct SineCosine {
  double sine = 0, cosine = 1;
};
SineCosine exact_sine_cosine(double radians);  // |radians| < 1e5

}  // namespace lockstep
