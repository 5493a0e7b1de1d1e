// The order in which a tensor's elements lie in memory: a pass over raw memory needs the same one in all its operands.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace lockstep::optim {

// Whether elements with equal indices lie at equal offsets in both. Sizes must be equal; the strides of dimensions of
// size 1 do not matter (a [20, 1, 5, 5] weight is contiguous and channels_last at once).
bool same_memory_order(const at::Tensor& a, const at::Tensor& b);

// `tensor` itself if it lies as `model` does and has its dtype, otherwise a copy that does. `model` must be dense.
at::Tensor laid_out_as(const at::Tensor& model, const at::Tensor& tensor);

// The same with its own dtype.
at::Tensor ordered_as(const at::Tensor& model, const at::Tensor& tensor);

// The gradient of `parameter`, laid out as it is and of its dtype. Throws ConfigError, which begins with the
// optimizer's name, for one that is not dense.
at::Tensor gradient_for(std::string_view optimizer, const at::Tensor& parameter);

// The elements of a dense tensor in the order of their memory, which is shared: [numel].
at::Tensor memory_of(const at::Tensor& dense);

}  // namespace lockstep::optim
