#include "lockstep/parallel/pipeline/stage_of.h"

#include <cstdint>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/parallel/pipeline/schedule.h"

namespace lockstep::parallel {
namespace {

void check_first_layers(const std::vector<int>& first_layers, int stages, size_t layers) {
  if (std::ssize(first_layers) != stages || first_layers[0] != 0) {
    throw ConfigError("pipeline: the first layers of ", stages, " stages of ", layers,
                      " layers: expected as many numbers as stages, rising from 0");
  }
  for (size_t i = 0; i < first_layers.size(); ++i) {
    const int first = first_layers[i];
    const bool is_last = i + 1 == first_layers.size();
    const int end = is_last ? static_cast<int>(layers) : first_layers[i + 1];
    if (first < end && std::cmp_less_equal(end, layers)) continue;
    throw ConfigError("pipeline: stage ", i, " of ", stages, " gets no layer: it would begin with layer ", first,
                      " and end before ", end, ", and the network has ", layers);
  }
}

}  // namespace

torch::nn::Sequential stage_of(const torch::nn::Sequential& net, int stages, int stage, std::vector<int> first_layers) {
  const auto children = net->named_children();
  if (first_layers.empty()) {
    std::vector<double> weights;
    for (const auto& child : children) {
      double count = 0;
      for (const at::Tensor& each : child.value()->parameters()) count += static_cast<double>(each.numel());
      weights.push_back(count);
    }
    first_layers = partition(weights, stages);
  }
  check_first_layers(first_layers, stages, children.size());
  if (stage < 0 || stage >= stages) throw ConfigError("pipeline: stage ", stage, " of ", stages);
  const auto at = static_cast<size_t>(stage);
  const size_t end = at + 1 < first_layers.size() ? static_cast<size_t>(first_layers[at + 1]) : children.size();
  torch::nn::Sequential part;
  auto layer = net->begin() + first_layers[at];
  for (auto i = static_cast<size_t>(first_layers[at]); i < end; ++i, ++layer)
    part->push_back(children[i].key(), *layer);
  return part;
}

}  // namespace lockstep::parallel
