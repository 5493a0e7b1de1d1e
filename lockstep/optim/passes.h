// The vector code of kernels.h: rules as plain numbers, tensors as plain arrays.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <variant>

namespace lockstep::optim {

struct SgdRule {
  double multiplier;  // of the gradient; negative to maximize
  double lr;
  double weight_decay;
  double momentum;
  double undamped;  // 1 - dampening
  bool nesterov;
  bool first;  // the momentum buffer holds nothing yet
};

struct AdagradRule {
  double multiplier;
  double lr;
  double weight_decay;
  double eps;
};

struct AdamRule {
  double multiplier;
  double weight_decay;  // added to the gradient
  double shrink;        // what the weight is multiplied by first
  double new_share;     // 1 - beta1
  double beta2;
  double step_size;
  double root_correction;  // √(1 - beta2^step)
  double eps;
};

struct RmspropRule {
  double multiplier;
  double lr;
  double weight_decay;
  double alpha;
  double eps;
  double momentum;
  bool centered;
};

struct NadamRule {
  double multiplier;
  double weight_decay;
  double shrink;
  double new_share;
  double beta2;
  double square_correction;  // 1 - beta2^step
  double gradient_step;      // what the gradient, and
  double average_step;       // what exp_avg is multiplied by
  double eps;
};

using Rule = std::variant<SgdRule, AdagradRule, AdamRule, RmspropRule, NadamRule>;

// What a step does beside its rule.
struct Extras {
  double clip = std::numeric_limits<double>::infinity();  // each multiplied gradient goes into [-clip, clip]; NaN stays
  double average_share = 1;                               // average += share · (new weight - average); 1: a copy
};

// `size` elements of a parameter, its gradient and its state. State not used: nullptr; the used come first.
template <typename T>
struct Elements {
  T* parameter;
  const T* gradient;
  std::array<T*, 3> state;
  size_t size;
  T* average = nullptr;  // of the weights; nullptr: none is kept
};

// One step of `rule`. For SGD state[0] is the momentum buffer (momentum ≠ 0); for Adagrad the sum; for Adam and
// NAdam exp_avg, exp_avg_sq and, for amsgrad, max_exp_avg_sq; for RMSprop square_avg, then, if centered, grad_avg,
// then, with momentum, the buffer.
void run_pass(const Rule& rule, const Elements<float>& elements, const Extras& extras = {});
void run_pass(const Rule& rule, const Elements<double>& elements, const Extras& extras = {});

// The average's part of a pass alone.
void run_average(double share, const Elements<float>& elements);
void run_average(double share, const Elements<double>& elements);

}  // namespace lockstep::optim
