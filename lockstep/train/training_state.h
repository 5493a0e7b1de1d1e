// Everything that a run needs to go on as if it had never stopped, as a checkpoint holds it.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/amp/loss_scaler.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/optim/any_optimizer.h"
#include "lockstep/train/origin.h"
#include "lockstep/train/scheduler.h"

namespace lockstep::train {

struct TrainingState {
  int64_t step = 0;  // steps done
  int64_t steps_per_epoch = 1;
  double best = 0;  // of the metric that best.pt goes by; below any value before the first evaluation
  Origin origin;
  Scheduler scheduler = {};  // not read by read_state(), for it is the run's own; plateau_in() reads what metrics made
};

// The model's state with `values` in the places of its parameters where they are defined: fp32 masters, averages.
// Shares memory with both.
checkpoint::NamedTensors state_with(const torch::nn::Module& model, const std::vector<at::Tensor>& values);

// The dict of DESIGN: model, optimizer, amp, scheduler, sampler, rng, meta; and ema, where the optimizer keeps an
// average: the model's state dict with the averages for weights. 16-bit weights with fp32 masters are saved as those.
// Shares the tensors' memory: write it before the next step. A collective where the optimizer is sharded; then whole on
// rank 0 alone.
checkpoint::Value to_checkpoint(const TrainingState& state, const torch::nn::Module& model,
                                const optim::AnyOptimizer& optimizer, const amp::LossScaler& scaler);

// The state in a checkpoint, before anything is touched. Throws DataError where `file` is no checkpoint of a run.
TrainingState read_state(const checkpoint::Value& value, const std::string& file);

// Copies weights and buffers out of it. Throws ConfigError (another model's), DataError.
void restore_model(const checkpoint::Value& value, const std::string& file, torch::nn::Module& model);

// Then optimizer, average and scaler; the model is for names. Throws ConfigError (another optimizer's), DataError.
void restore(const checkpoint::Value& value, const std::string& file, const torch::nn::Module& model,
             optim::AnyOptimizer& optimizer, amp::LossScaler& scaler);

// What a checkpoint of a run records of it; nothing where `value` is another file, or of before it was recorded.
std::optional<Origin> find_origin(const checkpoint::Value& value, const std::string& file);

}  // namespace lockstep::train
