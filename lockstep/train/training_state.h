// Everything that a run needs to go on as if it had never stopped, as a checkpoint holds it.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/amp/loss_scaler.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/optim/any_optimizer.h"
#include "lockstep/train/scheduler.h"

namespace lockstep::train {

// What the trajectory depends on besides model and optimizer. A resumed run takes lanes and threads from here, and must
// agree with the rest.
struct Origin {
  std::string recipe;
  std::string arch = {};                   // "": the recipe has one network
  std::vector<int64_t> sample_shape = {};  // {3, 64, 64}; empty: a checkpoint of before it was recorded
  int lanes = 1;
  int threads = 1;  // intra-op, a rank
  int64_t batch_size = 1;
  int64_t train_samples = 0;
  int64_t seed = 1;
  std::string precision;  // "O0", "O1 bfloat16"
  bool channels_last = false;
  double ema = 0;  // decay of the weights' average; 0: none
};

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

// Throws ConfigError that names the first setting in which the run differs from its checkpoint.
void check_origin(const Origin& run, const Origin& checkpoint, const std::string& file);

}  // namespace lockstep::train
