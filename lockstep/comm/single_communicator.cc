#include "lockstep/comm/single_communicator.h"

#include "lockstep/base/error.h"
#include "lockstep/comm/blocks.h"

namespace lockstep::comm {
namespace {

class DoneWork final : public Work {
 public:
  bool done() override { return true; }
  void wait() override {}
};

}  // namespace

std::shared_ptr<Work> SingleCommunicator::fold(std::vector<at::Tensor> tensors, FoldOptions options) {
  check_fold(tensors, options);
  if (options.square_sums.defined()) {
    auto* sums = options.square_sums.mutable_data_ptr<double>();
    for (const auto& tensor : tensors) {
      const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
      const int64_t elements = tensor.numel();
      for_each_block({&elements, 1}, {0, block_count(elements)}, [&](size_t, int64_t first, int64_t n, int64_t) {
        *sums++ = square_sum(tensor.scalar_type(), data + first * static_cast<int64_t>(tensor.element_size()), n);
      });
    }
  }
  return std::make_shared<DoneWork>();
}

void SingleCommunicator::all_reduce(const at::Tensor& tensor, ReduceOp op) {
  check_reducible("all_reduce", tensor, op);
}

void SingleCommunicator::broadcast(const at::Tensor&, int root) {
  if (root != 0) throw BugError("broadcast: no rank ", root, " in a world of 1");
}

at::Tensor SingleCommunicator::all_gather(const at::Tensor& tensor) { return tensor.detach().clone().unsqueeze(0); }

at::Tensor SingleCommunicator::reduce_scatter(const at::Tensor& tensor, ReduceOp op) {
  check_reducible("reduce_scatter", tensor, op);
  check_rows("reduce_scatter", tensor, 1);
  return tensor.detach()[0].clone();
}

}  // namespace lockstep::comm
