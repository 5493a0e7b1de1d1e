// A parameter in its step as tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

namespace lockstep::optim {

namespace device {
class StepQueue;
}

// All tensors are dense, on one device, in the same memory order and of the same dtype: fp32, fp64, bf16 or fp16. The
// last two are computed in fp32 and rounded when they are stored; their average is fp32. If the parameter is an fp32
// master, the gradient and `rounded` are bf16 or fp16, and all else is fp32.
struct Operands {
  const at::Tensor& parameter;
  const at::Tensor& gradient;
  std::array<const at::Tensor*, 3> state = {};  // unused ones are nullptr and follow the used ones
  const at::Tensor* average = nullptr;          // of the weights as they are stored; nullptr: none is kept
  const at::Tensor* rounded = nullptr;          // receives the new parameter, rounded to nearest even
  device::StepQueue* queue = nullptr;           // takes the step later, together with others'; nullptr: it is taken now
};

}  // namespace lockstep::optim
