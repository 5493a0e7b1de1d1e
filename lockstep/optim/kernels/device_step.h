// The step of one parameter on a device other than the CPU, by libtorch's own kernels for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>

#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/kernels/operands.h"

namespace lockstep::optim::device {

// The tensors of state in fp32 or wider; undefined where there is none.
using States = std::array<at::Tensor, 3>;

// The tensor form of a rule: updates the weight p and the state s in place. g is the multiplied, clipped gradient and
// stays as it is. All are fp32 or wider.
using TensorForm = std::function<void(at::Tensor& p, const at::Tensor& g, States& s)>;

// Takes one step by `form` and stores its results, with the copy and the average that the operands have.
void step(const Operands& operands, double multiplier, const Extras& extras, const TensorForm& form);

// Moves `average` towards the weights by `share` of the way.
void move_average(const at::Tensor& parameter, const at::Tensor& average, double share);

// The parts of such a step, for rules that need several.

// `tensor` in fp32 or wider; the tensor itself if it is that already.
at::Tensor wide(const at::Tensor& tensor);
States wide_states(const Operands& operands);

// The gradient times `multiplier`, clipped.
at::Tensor clipped_gradient(const at::Tensor& gradient, double multiplier, const Extras& extras);

// g + weight_decay · p.
at::Tensor decayed(const at::Tensor& p, const at::Tensor& g, double weight_decay);

void store_states(const States& states, const Operands& operands);
// Stores the new weight, its rounded copy and its average.
void store_weight(const at::Tensor& p, const Operands& operands, const Extras& extras);

// Σ x² in fp64. Waits for the device.
double square_sum(const at::Tensor& x);

}  // namespace lockstep::optim::device
