// Evaluation: loss and metrics over all samples of a data set, each counted once. They are equal at any number of
// ranks.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "lockstep/amp/opt_level.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/dataset.h"
#include "lockstep/train/recipe.h"

namespace lockstep::train {

struct Evaluation {
  double loss = 0;  // mean over the samples
  int64_t samples = 0;
  nlohmann::ordered_json metrics;
};

struct EvaluationOptions {
  int64_t chunk = 256;  // samples; the result's bits depend on it
  bool channels_last = false;
  amp::Policy amp;
  c10::Device device{c10::kCPU};        // the model's
  int workers = 0;                      // threads that read ahead; 0: none do
  std::function<void()> on_chunk = {};  // called after each chunk that this rank has computed
};

// Evaluates a model. The data set is cut into fixed chunks, one rank computes each chunk, and the chunks' sums are
// added in the order of the chunks. The module is in eval mode meanwhile, and afterwards its layers have the modes that
// they had before. A collective.
Evaluation evaluate(const Recipe& recipe, const Model& model, const data::Dataset& data, comm::Communicator& comm,
                    const EvaluationOptions& options);

// Evaluates the first sample alone, on this rank alone, in the same way.
Evaluation evaluate_sample(const Recipe& recipe, const Model& model, const data::Dataset& data,
                           const EvaluationOptions& options);

}  // namespace lockstep::train
