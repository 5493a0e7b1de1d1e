// The arithmetic of the optimizers: one pass over raw memory for each parameter, which reads the gradient once and
// writes nothing but the weights and the state.
//
// The order of operations and the places of fused multiply-adds are those of PyTorch's own (unfused) optimizers, whose
// numbers these follow to the last bit or nearly. libtorch's fused kernels write the multiplied gradient back, divide
// where a factor is asked for, and in 2.11 their SGD leaves bf16 and fp16 weights as they are but for the last few.
// Every element goes through the same instructions wherever it lies: the result depends neither on memory order nor on
// the number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "lockstep/optim/kernels/passes.h"

namespace lockstep::optim {

// One parameter in its step. All tensors are dense, on one device, in the same memory order and of the same dtype:
// fp32, fp64, bf16 or fp16. The last two are computed in fp32 and rounded when they are stored; their average is fp32.
// Or the parameter is an fp32 master: then the gradient and `rounded` are bf16 or fp16, and all else fp32. What is said
// above is the CPU's way; on other devices libtorch's kernels do it (device_pass.h).
struct Operands {
  const at::Tensor& parameter;
  const at::Tensor& gradient;
  std::array<const at::Tensor*, 3> state = {};  // as run_pass() takes it
  const at::Tensor* average = nullptr;          // of the weights as they are stored; none: not kept
  const at::Tensor* rounded = nullptr;          // receives the new parameter, rounded to nearest even
};

// Takes one step with libtorch's intra-op threads. Throws BugError for a dtype other than the four.
void step_parameter(const Rule& rule, const Operands& operands, const Extras& extras = {});

// Moves `average` towards the weights by `share` of the way, as such a step does.
void average_parameter(const at::Tensor& parameter, const at::Tensor& average, double share);

}  // namespace lockstep::optim
