// apex.multi_tensor_apply and the operations of amp_C that it is called with, over lockstep/amp/multi_tensor.h:
//
//   multi_tensor_applier(amp_C::multi_tensor_scale, noop_flag, {in, out}, 1 / scale);
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace lockstep::apex::multi_tensor_apply {

using TensorLists = std::vector<std::vector<at::Tensor>>;

// Calls op(chunk_size, noop_flag, lists, arguments…). Any thread.
class MultiTensorApply {
 public:
  static constexpr bool available = true;

  explicit constexpr MultiTensorApply(int64_t chunk_size) : chunk_size_(chunk_size) {}

  template <typename Op, typename... Arguments>
  decltype(auto) operator()(Op&& op, const at::Tensor& noop_flag, const TensorLists& lists,
                            Arguments&&... arguments) const {
    return std::forward<Op>(op)(chunk_size_, noop_flag, lists, std::forward<Arguments>(arguments)...);
  }

 private:
  int64_t chunk_size_;
};

inline constexpr MultiTensorApply multi_tensor_applier(65536);

}  // namespace lockstep::apex::multi_tensor_apply

// Operations on lists of tensors. chunk_size is ignored: chunks are as large as suits the cache. noop_flag is an
// integer tensor [1], which becomes 1 where a value was not finite and else stays as it is. Tensors of a list are as
// multi_tensor.h demands; all throw ConfigError for other numbers of lists.
namespace lockstep::apex::amp_C {

using multi_tensor_apply::TensorLists;

// lists {in, out}: out = in · scale.
void multi_tensor_scale(int64_t chunk_size, const at::Tensor& noop_flag, const TensorLists& lists, double scale);

// lists {x, y, out}: out = a · x + b · y. arg_to_check: the list that is checked for values that are not finite, 0 (x)
// or 1 (y); -1: both.
void multi_tensor_axpby(int64_t chunk_size, const at::Tensor& noop_flag, const TensorLists& lists, double a, double b,
                        int arg_to_check);

// lists {x}: the 2-norm of all elements together, fp32 [1], and, if per_tensor, of each tensor, fp32 [tensors], which
// is [0] without. noop_flag stays as it is.
std::pair<at::Tensor, at::Tensor> multi_tensor_l2norm(int64_t chunk_size, const at::Tensor& noop_flag,
                                                      const TensorLists& lists, bool per_tensor = false);

}  // namespace lockstep::apex::amp_C
