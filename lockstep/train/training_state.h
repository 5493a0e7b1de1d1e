// The training state that a checkpoint holds: everything that lets a run resume as if it had never stopped.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/amp/loss_scaler.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/load_model.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/data/skipped_samples.h"
#include "lockstep/optim/any_optimizer.h"
#include "lockstep/train/origin.h"
#include "lockstep/train/scheduler.h"

namespace lockstep::train {

struct TrainingState {
  int64_t step = 0;  // steps done
  int64_t steps_per_epoch = 1;
  double best = 0;      // the best value of the metric that decides best.pt; before the first evaluation worse than any
  std::string best_by;  // BestMetric::text(); empty in a checkpoint that is older than this field
  // By which --early-stop goes: the best value at an interval, and the number of intervals since then. An evaluation at
  // a run's end is none of them, for it depends on --steps.
  double best_at_interval = 0;
  int64_t since_best = 0;
  bool is_best = false;  // this checkpoint is the best so far
  // The run was stopped in the evaluation at this step, which a run that goes on makes first.
  bool unevaluated = false;
  Origin origin;
  std::vector<data::BadSample> skipped = {};  // by --skip-bad
  Scheduler scheduler = {};  // not read by read_state(), for it is the run's own; plateau_in() reads what metrics made
};

// Returns the model's state dict with `values`, such as fp32 masters or averages, in place of the optimizer's
// parameters for which they are defined. Shares memory with both.
checkpoint::NamedTensors state_with(const torch::nn::Module& model, const optim::AnyOptimizer& optimizer,
                                    const std::vector<at::Tensor>& values);

// Returns the dict of DESIGN: model, optimizer, amp, scheduler, sampler, rng and meta. If the optimizer keeps an
// average it also has ema, the model's state dict with the averages as weights. 16-bit weights that have fp32 masters
// are saved as the masters. It shares the tensors' memory: write it before the next step. If the optimizer is sharded,
// this is a collective and the dict is whole on rank 0 alone.
checkpoint::Value to_checkpoint(const TrainingState& state, const torch::nn::Module& model,
                                const optim::AnyOptimizer& optimizer, const amp::LossScaler& scaler);

// Reads the state in a checkpoint, and changes nothing. Throws DataError if `file` is no checkpoint of a run.
TrainingState read_state(const checkpoint::Value& value, const std::string& file);

// Copies weights and buffers from a checkpoint into the model. Throws ConfigError for another model's, DataError.
void restore_model(const checkpoint::Value& value, const std::string& file, torch::nn::Module& model);

// Restores the optimizer's state, average and scaler, after restore_model(). The optimizer keeps its own options, which
// a resumed run may change. The model gives the names. `copy` fills the optimizer's tensors (checkpoint/formats/
// stored_tensor.h). A collective for a sharded optimizer. Throws ConfigError for another optimizer's state, DataError.
void restore(const checkpoint::Value& value, const std::string& file, const torch::nn::Module& model,
             optim::AnyOptimizer& optimizer, amp::LossScaler& scaler,
             optim::CopyElements copy = checkpoint::copy_elements);

// Returns the origin that a run's checkpoint records. Returns nothing if `value` is another file, or was written by a
// version that did not record it.
std::optional<Origin> find_origin(const checkpoint::Value& value, const std::string& file);

// Loads a model as checkpoint::load_model() does. Where the weights don't fit, the error names a picture of other
// channels (weights/input_channels.h), if `data` are given, else the network that they are of, if the checkpoint has
// the record of its run.
checkpoint::LoadedModel load_model(torch::nn::Module& module, const checkpoint::Value& root,
                                   const checkpoint::LoadModelOptions& options, const data::Dataset* data = nullptr);

}  // namespace lockstep::train
