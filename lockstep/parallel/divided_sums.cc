// DistributedDataParallel with a hook that gives each rank the sums of some parameters alone (CommHook::divides).
#include <ATen/ops/tensor.h>

#include "lockstep/optim/held_gradient.h"
#include "lockstep/parallel/distributed_data_parallel.h"

namespace lockstep::parallel {

void DistributedDataParallel::drop_gradients_of_others() const {
  for (const auto* each : stepped_) {
    for (const at::Tensor& weight : each->weights_->all()) {
      if (each->options_.comm_hook->owner_of(weight) != world_->rank()) weight.mutable_grad().reset();
    }
  }
}

// The square sum and the number of the gradients that the ranks have together. Each rank's own are held.
void DistributedDataParallel::add_verdicts(StepResult& result) const {
  const at::Tensor sums =
      at::tensor({result.marks->square_sum(result.loss_scale), static_cast<double>(result.gradients)}, at::kDouble);
  world_->communicator().all_reduce(sums, comm::ReduceOp::kSum);
  result.square_sum = sums[0].item<double>();
  result.gradients = sums[1].item<int64_t>();
  result.overflow.reset();
  result.coverage = amp::Coverage::kMore;
  for (auto* each : stepped_) {
    each->reducer_.end_divided(result.square_sum);
    for (const at::Tensor& weight : each->weights_->all()) {
      if (weight.grad().defined()) optim::hold_divided(weight.grad(), result.loss_scale);
    }
  }
}

}  // namespace lockstep::parallel
