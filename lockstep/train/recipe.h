// What is trained: a recipe joins a model, data, a loss, metrics and defaults, under one name.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/train/options/recipe_description.h"

namespace lockstep::train {

struct Model {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor& data)> forward;  // uses the module's parameters
};

// What a run has where its options say nothing.
struct Defaults {
  int batch_size = 32;  // samples a lane
  int epochs = 1;
  double lr = 0.01;
  std::string optimizer = "sgd";  // one of optim::kOptimizers
  double momentum = 0;
  double weight_decay = 0;
  std::string schedule = "constant";  // one of schedule::schedule_names()
  int64_t warmup = 0;                 // steps
  bool channels_last = false;         // which memory format is faster for this model
  int eval_batch = 256;               // samples that evaluation computes at a time
};

// What a command line knows of it, RecipeDescription says: name, presets, and the recipe's own options, which are read
// before all below is asked. From then on it is immutable: any thread may call.
class Recipe : public RecipeDescription {
 public:
  // `preset`: one of presets(), or "" for the recipe's own.
  virtual Defaults defaults(const std::string& preset) const = 0;
  // Throws DataError. An empty path: data made on the spot, keyed by the seed.
  virtual data::Splits open_data(const std::string& path, uint64_t seed) const = 0;
  // Initialised by the seed alone.
  virtual Model make_model(uint64_t seed, const data::Dataset& data) const = 0;

  // The mean over the samples of each one's own loss, so that lanes' losses can be joined exactly: a scalar with a
  // graph.
  virtual at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const = 0;
  // Sums over the samples of whatever metrics() needs: fp64 [k], exact or of one fixed order.
  virtual std::vector<double> measure(const at::Tensor& output, const at::Tensor& target) const = 0;
  // The metrics of final.json, from the sums over all samples: {"accuracy": 0.98}.
  virtual nlohmann::ordered_json metrics(const std::vector<double>& sums, int64_t samples) const = 0;
  // The metric that best.pt goes by; more is better.
  virtual std::string best_by() const = 0;
};

}  // namespace lockstep::train
