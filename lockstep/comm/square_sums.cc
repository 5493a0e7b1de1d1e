#include "lockstep/comm/square_sums.h"

#include <cstddef>

#include "lockstep/comm/blocks.h"

namespace lockstep::comm {

void take_square_sums(const std::vector<at::Tensor>& tensors, const at::Tensor& sums) {
  auto* sum = sums.mutable_data_ptr<double>();
  for (const auto& tensor : tensors) {
    const int64_t elements = tensor.numel();
    const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
    for_each_block({&elements, 1}, {0, block_count(elements)}, [&](size_t, int64_t first, int64_t n, int64_t) {
      *sum++ = square_sum(tensor.scalar_type(), data + first * static_cast<int64_t>(tensor.element_size()), n);
    });
  }
}

}  // namespace lockstep::comm
