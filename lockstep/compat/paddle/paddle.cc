#include "lockstep/compat/paddle/paddle.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <sstream>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/parallel/gradients/ownership.h"
#include "lockstep/parallel/model_check.h"
#include "lockstep/parallel/gradients/sparse_fold.h"
#include "lockstep/parallel/state_broadcast.h"

namespace lockstep::parallel::paddle {
namespace {

constexpr int kMostRanks = 1 << 20;

int number_of(const char* paddle, const char* other, int64_t least, int64_t otherwise) {
  if (const auto given = env_int(paddle, least, kMostRanks)) return static_cast<int>(*given);
  return static_cast<int>(env_int(other, least, kMostRanks).value_or(otherwise));
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

}  // namespace

Env Env::current() {
  Env env{.nranks = number_of("PADDLE_TRAINERS_NUM", "WORLD_SIZE", 1, 1),
          .local_rank = number_of("PADDLE_TRAINER_ID", "RANK", 0, 0),
          .dev_id = number_of("FLAGS_selected_gpus", "LOCAL_RANK", 0, 0),
          .current_endpoint = lockstep::env("PADDLE_CURRENT_ENDPOINT").value_or(""),
          .trainer_endpoints = split(lockstep::env("PADDLE_TRAINER_ENDPOINTS").value_or(""))};
  if (env.local_rank >= env.nranks) {
    throw ConfigError("PADDLE_TRAINER_ID is ", env.local_rank, " and PADDLE_TRAINERS_NUM ", env.nranks,
                      "; trainers are numbered from 0");
  }
  if (!env.trainer_endpoints.empty() && env.trainer_endpoints.size() != static_cast<size_t>(env.nranks)) {
    throw ConfigError("PADDLE_TRAINER_ENDPOINTS names ", env.trainer_endpoints.size(), " endpoints for ", env.nranks,
                      " trainers; it names one for each");
  }
  return env;
}

std::shared_ptr<World> prepare_context() {
  const Env env = Env::current();
  if (!lockstep::env("PADDLE_TRAINERS_NUM")) return init();
  InitOptions options{.rank = env.local_rank, .world_size = env.nranks};
  if (!env.trainer_endpoints.empty()) options.init_method = "tcp://" + env.trainer_endpoints[0];
  return init(options);
}

DataParallel::DataParallel(std::shared_ptr<torch::nn::Module> layers, std::shared_ptr<World> world,
                           const BucketOptions& buckets)
    : layers_(std::move(layers)), world_(std::move(world)), buckets_(buckets) {
  auto& comm = world_->communicator();
  check_same_model(*layers_, {}, comm);
  for (const auto& item : layers_->named_parameters()) {
    const auto is_it = [&](const at::Tensor& other) { return other.is_same(item.value()); };
    if (std::any_of(parameters_.begin(), parameters_.end(), is_it)) continue;
    broadcast_tensor(item.value(), comm, 0);
    names_.push_back(item.key());
    parameters_.push_back(item.value());
  }
  for (const auto& buffer : layers_->buffers()) broadcast_tensor(buffer, comm, 0);
}

at::Tensor DataParallel::scale_loss(const at::Tensor& loss) const {
  return world_->size() == 1 ? loss : loss / world_->size();
}

// Which parameters have a gradient, here and so everywhere.
std::vector<size_t> DataParallel::with_gradient() const {
  const at::Tensor counts = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kLong);
  auto* count = counts.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < parameters_.size(); ++i) count[i] = parameters_[i].grad().defined() ? 1 : 0;
  world_->communicator().all_reduce(counts, comm::ReduceOp::kSum);
  std::vector<size_t> with;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (count[i] == 0) continue;
    if (count[i] < world_->size()) {
      throw ConfigError(names_[i], " has a gradient on ", count[i], " of ", world_->size(),
                        " ranks; apply_collective_grads needs it on all of them, or on none");
    }
    with.push_back(i);
  }
  return with;
}

void DataParallel::apply_collective_grads() {
  auto& comm = world_->communicator();
  std::vector<ParameterSize> sizes;
  std::vector<size_t> dense;
  for (const size_t i : with_gradient()) {
    at::Tensor& grad = parameters_[i].mutable_grad();
    if (grad.is_sparse()) {
      grad = fold_sparse({add_equal_rows(rows_of(grad, names_[i]))}, parameters_[i], comm);
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
    works.push_back(comm.fold(std::move(gradients),
                              {.label = "gradients from " + names_[dense[bucket[0]]] + " on", .wire = buckets_.wire}));
  }
  for (const auto& work : works) work->wait();
}

}  // namespace lockstep::parallel::paddle
