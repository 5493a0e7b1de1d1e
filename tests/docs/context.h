// The names that the code in the docs takes for granted. Nothing here is ever called.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include <utility>
#include <vector>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/safetensors_writer.h"
#include "lockstep/checkpoint/found_state.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/data/loader.h"
#include "lockstep/loop/early_stopping.h"
#include "lockstep/loop/evaluate.h"
#include "lockstep/loop/state.h"
#include "lockstep/optim/parameter_groups.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/optim/rules/sgd.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/schedule/schedule.h"

namespace docs {

using namespace lockstep;

extern torch::nn::Linear net;
extern std::shared_ptr<World> world;
extern parallel::DistributedDataParallel ddp;
extern optim::SGD optimizer;
extern amp::MixedPrecision mixed;
extern data::Loader loader;
extern const data::StepBatch batch;
extern const int64_t step, steps;
extern loop::State state;
extern checkpoint::CheckpointStore store;
extern const loop::Measured found;
extern const at::Tensor first, second, images, labels;
extern const std::vector<std::pair<at::Tensor, at::Tensor>> batches;
struct LossOf {
  at::Tensor operator()(const data::LaneBatch& lane) const;
  at::Tensor operator()(const at::Tensor& lane) const;
};
extern const LossOf loss_of;
at::Tensor my_entropy(const at::Tensor& logits, const at::Tensor& target);

}  // namespace docs
