#include "lockstep/parallel/pipeline/stage_of.h"

#include <cstdint>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/parallel/pipeline/schedule.h"

namespace lockstep::parallel {
namespace {

void check_first_layers(const std::vector<int>& first_layers, int stages, size_t layers) {
  bool rises = std::ssize(first_layers) == stages && first_layers[0] == 0;
  for (size_t i = 1; rises && i < first_layers.size(); ++i) {
    rises = first_layers[i] > first_layers[i - 1] && std::cmp_less(first_layers[i], layers);
  }
  if (rises) return;
  throw ConfigError("pipeline: the first layers of ", stages, " stages of ", layers,
                    " layers: expected as many numbers as stages, rising from 0");
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
