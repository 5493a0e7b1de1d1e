#include "lockstep/parallel/gradient_fold.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/parallel/gradients/ownership.h"
#include "lockstep/parallel/gradients/sparse_fold.h"
#include "lockstep/parallel/model_check.h"
#include "lockstep/parallel/state_broadcast.h"

namespace lockstep::parallel {

GradientFold::GradientFold(const torch::nn::Module& module, comm::Communicator& comm, const BucketOptions& buckets)
    : comm_(comm), buckets_(buckets) {
  check_same_model(module, {}, comm);
  for (const auto& item : module.named_parameters()) {
    const auto is_it = [&](const at::Tensor& other) { return other.is_same(item.value()); };
    if (std::any_of(parameters_.begin(), parameters_.end(), is_it)) continue;
    broadcast_tensor(item.value(), comm, 0);
    names_.push_back(item.key());
    parameters_.push_back(item.value());
  }
  for (const auto& buffer : module.buffers()) broadcast_tensor(buffer, comm, 0);
}

// Returns the parameters that have a gradient on every rank. Throws ConfigError for one that has it on some ranks only.
std::vector<size_t> GradientFold::with_gradient() const {
  const at::Tensor counts = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kLong);
  auto* count = counts.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < parameters_.size(); ++i) count[i] = parameters_[i].grad().defined() ? 1 : 0;
  comm_.all_reduce(counts, comm::ReduceOp::kSum);
  std::vector<size_t> with;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (count[i] == 0) continue;
    if (count[i] < comm_.size()) {
      throw ConfigError(names_[i], " has a gradient on ", count[i], " of ", comm_.size(),
                        " ranks; a fold needs it on all of them, or on none");
    }
    with.push_back(i);
  }
  return with;
}

void GradientFold::run() {
  std::vector<ParameterSize> sizes;
  std::vector<size_t> dense;
  for (const size_t i : with_gradient()) {
    at::Tensor& grad = parameters_[i].mutable_grad();
    if (grad.is_sparse()) {
      grad = fold_sparse({add_equal_rows(rows_of(grad, names_[i]))}, parameters_[i], comm_);
      continue;
    }
    grad = owned(std::move(grad), parameters_[i]);
    dense.push_back(i);
    sizes.push_back({static_cast<int64_t>(grad.nbytes()), grad.scalar_type(), grad.device()});
  }
  std::vector<std::shared_ptr<comm::Work>> works;
  for (const auto& bucket : plan_buckets(sizes, buckets_)) {
    std::vector<at::Tensor> gradients;
    for (const size_t number : bucket) gradients.push_back(parameters_[dense[number]].grad());
    works.push_back(comm_.fold(std::move(gradients),
                               {.label = "gradients from " + names_[dense[bucket[0]]] + " on", .wire = buckets_.wire}));
  }
  for (const auto& work : works) work->wait();
}

}  // namespace lockstep::parallel
