#include "lockstep/compat/apex/multi_tensor_apply.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cmath>

#include "lockstep/amp/multi_tensor.h"
#include "lockstep/base/error.h"

namespace lockstep::apex::amp_C {
namespace {

void check_lists(const char* op, const TensorLists& lists, size_t expected) {
  if (lists.size() != expected) throw ConfigError(op, ": ", lists.size(), " lists of tensors, not ", expected);
}

void raise_unless(bool finite, const at::Tensor& noop_flag) {
  if (!finite) noop_flag.fill_(1);
}

}  // namespace

void multi_tensor_scale(int64_t, const at::Tensor& noop_flag, const TensorLists& lists, double scale) {
  check_lists("multi_tensor_scale", lists, 2);
  raise_unless(lockstep::amp::multi_tensor_scale(lists[0], lists[1], scale), noop_flag);
}

void multi_tensor_axpby(int64_t, const at::Tensor& noop_flag, const TensorLists& lists, double a, double b,
                        int arg_to_check) {
  check_lists("multi_tensor_axpby", lists, 3);
  if (arg_to_check < -1 || arg_to_check > 1) {
    throw ConfigError("multi_tensor_axpby: arg_to_check ", arg_to_check, ": expected -1, 0 or 1");
  }
  bool finite = true;
  if (arg_to_check >= 0) {
    // Before the output is written, which may be that list itself.
    const auto& checked = lists[static_cast<size_t>(arg_to_check)];
    finite = std::isfinite(lockstep::amp::multi_tensor_l2norm(checked).total);
  }
  const bool both = lockstep::amp::multi_tensor_axpby(a, lists[0], b, lists[1], lists[2]);
  raise_unless(arg_to_check >= 0 ? finite : both, noop_flag);
}

std::pair<at::Tensor, at::Tensor> multi_tensor_l2norm(int64_t, const at::Tensor&, const TensorLists& lists,
                                                      bool per_tensor) {
  check_lists("multi_tensor_l2norm", lists, 1);
  const auto norms = lockstep::amp::multi_tensor_l2norm(lists[0]);
  const auto device = lists[0].empty() ? at::Device(at::kCPU) : lists[0][0].device();
  const auto options = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor each = at::empty({per_tensor ? static_cast<int64_t>(norms.each.size()) : 0}, options);
  for (int64_t i = 0; i < each.numel(); ++i) each[i].fill_(norms.each[static_cast<size_t>(i)]);
  return {at::full({1}, norms.total, options), each};
}

}  // namespace lockstep::apex::amp_C
