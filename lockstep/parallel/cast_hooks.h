// Takes the 16-bit gradients of weights that autocast has cast, before backward casts them to fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

namespace lockstep::parallel {

// Gets a parameter's number and its gradient in the type that it was cast to, which nobody writes to any more. Whether
// it has taken it: nothing is accumulated then, though hooks that follow the accumulation run.
using TakeUncast = std::function<bool(size_t parameter, const at::Tensor& gradient)>;

// For the next backward from `loss`: `take` gets the gradients of those parameters that the loss depends on through one
// cast alone. It is held weakly.
void hook_casts(const at::Tensor& loss, const std::vector<at::Tensor>& parameters,
                const std::shared_ptr<const TakeUncast>& take);

}  // namespace lockstep::parallel
