// The vector code of kernels.h: rules as plain numbers, tensors as plain arrays.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <array>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <variant>

namespace lockstep::optim {

struct SgdRule {
  double multiplier;  // of the gradient; negative to maximize
  double lr;
  double weight_decay;
  double momentum;
  double undamped;  // 1 - dampening
  bool nesterov;
  bool first;         // the momentum buffer holds nothing yet
  double shrink = 1;  // what the weight is multiplied by first
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

// What numbers stored as T are computed in.
template <typename T>
using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;

// `size` elements of a parameter, stored as W, its gradient, as G, and its state. State not used: nullptr; the used
// come first.
template <typename W, typename G = W>
struct Elements {
  W* parameter;
  const G* gradient;
  std::array<W*, 3> state;
  size_t size;
  Computed<W>* average = nullptr;  // of the weights as they are stored; nullptr: none is kept
  G* rounded = nullptr;            // receives a copy of the new weights; nullptr: none is kept
};

// Of one type, or fp32 masters with a gradient and a copy of 16 bits. fp16 and bf16 are computed in fp32 and rounded to
// nearest, ties to even, when they are stored; a NaN stays one.
using AnyElements = std::variant<Elements<float>, Elements<double>, Elements<at::BFloat16>, Elements<at::Half>,
                                 Elements<float, at::BFloat16>, Elements<float, at::Half>>;

// One step of `rule`. For SGD state[0] is the momentum buffer (momentum ≠ 0); for Adagrad the sum; for Adam and
// NAdam exp_avg, exp_avg_sq and, for amsgrad, max_exp_avg_sq; for RMSprop square_avg, then, if centered, grad_avg,
// then, with momentum, the buffer.
void run_pass(const Rule& rule, const AnyElements& elements, const Extras& extras = {});

// The average's part of a pass alone.
void run_average(double share, const AnyElements& elements);

}  // namespace lockstep::optim
