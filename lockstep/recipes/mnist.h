// Digit classification with LeNet, on MNIST's files, the JSON file of Paddle's course, or digits drawn on the spot.
#pragma once

#include <string>
#include <vector>

#include "lockstep/recipes/described.h"
#include "lockstep/recipes/options/recipe_options.h"

namespace lockstep::recipes {

class Mnist final : public Described<MnistOptions> {
 public:
  using Described::Described;
  train::Defaults defaults() const override;
  data::Splits open_data(const train::DataRequest& request) const override;
  train::OpenInput input_opener(const train::InputRequest& request) const override;
  bool repeats_operations() const override { return true; }
  train::Model make_model(uint64_t seed, const data::Dataset& data) const override;
  at::Tensor loss(const at::Tensor& output, const data::Batch& batch) const override;
  std::vector<double> measure(const at::Tensor& output, const data::Batch& batch) const override;
  nlohmann::ordered_json metrics(const std::vector<double>& sums, int64_t samples) const override;
  std::string best_by() const override { return "accuracy"; }
};

}  // namespace lockstep::recipes
