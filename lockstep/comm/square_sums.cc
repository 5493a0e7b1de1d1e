#include "lockstep/comm/square_sums.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>

#include <cstddef>

#include "lockstep/comm/blocks.h"

namespace lockstep::comm {

int64_t square_sum_count(int64_t elements, at::Device device) { return device.is_cpu() ? block_count(elements) : 1; }

void take_square_sums(const std::vector<at::Tensor>& tensors, const at::Tensor& sums) {
  if (!tensors.empty() && !tensors[0].is_cpu()) return take_whole_square_sums(tensors, sums);
  auto* sum = sums.mutable_data_ptr<double>();
  for (const auto& tensor : tensors) {
    const int64_t elements = tensor.numel();
    const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
    for_each_block({&elements, 1}, {0, block_count(elements)}, [&](size_t, int64_t first, int64_t n, int64_t) {
      *sum++ = square_sum(tensor.scalar_type(), data + first * static_cast<int64_t>(tensor.element_size()), n);
    });
  }
}

// A few kernels for all tensors, which add in fp64.
void take_whole_square_sums(const std::vector<at::Tensor>& tensors, const at::Tensor& sums) {
  const at::Tensor norms = at::stack(at::_foreach_norm(tensors, 2, at::kDouble));
  sums.copy_(norms.square_(), /*non_blocking=*/true);
}

}  // namespace lockstep::comm
