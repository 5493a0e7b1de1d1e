// Evaluation: loss and metrics over all samples of a data set, each counted once. They are equal at any number of
// ranks.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/amp/opt_level.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/skipped_samples.h"
#include "lockstep/train/recipe.h"

namespace lockstep::train {

struct Evaluation {
  double loss = 0;       // mean over the samples
  int64_t samples = 0;   // that it is of
  int64_t left_out = 0;  // that can't be read
  nlohmann::ordered_json metrics;
};

// A result as people read it: "0.9844"; whole numbers and texts as they are. JSON has it in full.
std::string text_of(const nlohmann::ordered_json& metric);
// "loss 0.41, top1 0.9844 on 64 test samples (1 more can't be read)". `split`: "test".
std::string text_of(const Evaluation& evaluation, const std::string& split);

struct EvaluationOptions {
  int64_t chunk = 256;  // samples; the result's bits depend on it
  bool channels_last = false;
  amp::Policy amp;
  c10::Device device{c10::kCPU};  // the model's
  int workers = 0;                // threads that read ahead; 0: none do
  // Where samples that can't be read are listed; they are left out. Null: the first one is the evaluation's error.
  data::SkippedSamples* skipped = nullptr;
  std::function<void()> on_chunk = {};  // called after each chunk that this rank has computed
  // Called with each chunk that this rank computes, on the device, before it is measured. Rank 0's first one is the
  // first of the data set.
  std::function<void(const data::Batch& batch, const at::Tensor& output)> on_output = {};
};

// Evaluates a model. The data set is cut into fixed chunks, one rank computes each chunk, and the chunks' sums are
// added in the order of the chunks. The module is in eval mode meanwhile, and afterwards its layers have the modes that
// they had before. A collective. Throws DataError as SkippedSamples::add, and if no sample can be read.
Evaluation evaluate(const Recipe& recipe, const Model& model, const data::Dataset& data, comm::Communicator& comm,
                    const EvaluationOptions& options);

// Evaluates the first sample alone, on this rank alone, in the same way; with options.skipped the first one that can be
// read.
Evaluation evaluate_sample(const Recipe& recipe, const Model& model, const data::Dataset& data,
                           const EvaluationOptions& options);

}  // namespace lockstep::train
