// The order in which a tensor's elements lie in memory. A pass over raw memory needs the same order in all its
// operands.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "lockstep/optim/state.h"

namespace lockstep::optim {

// Whether elements of equal indices lie at equal offsets in both. Sizes must be equal. The strides of dimensions of
// size 1 do not matter: a [20, 1, 5, 5] weight is contiguous and channels_last at once.
bool same_memory_order(const at::Tensor& a, const at::Tensor& b);

// `tensor` itself if it has the memory order and dtype of `model`, else a copy that has. `model` must be dense.
at::Tensor laid_out_as(const at::Tensor& model, const at::Tensor& tensor);

// `tensor` in the memory order of `model`, with its own dtype; where it has another order, what `copy` makes of it.
at::Tensor ordered_as(const at::Tensor& model, const at::Tensor& tensor, CopyElements copy = copy_plainly);

// The gradient of `parameter`, in its memory order and dtype, and dense. Throws ConfigError that begins with the
// optimizer's name for one of a layout other than strided and COO.
at::Tensor gradient_for(std::string_view optimizer, const at::Tensor& parameter);

// A view of a dense tensor's elements in the order of their memory: [numel].
at::Tensor memory_of(const at::Tensor& dense);

}  // namespace lockstep::optim
