#include "lockstep/parallel/pipeline/schedule.h"

#include <algorithm>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::parallel {

std::vector<PipelineAction> actions_of(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  if (stage < 0 || stage >= stages) throw ConfigError("pipeline: stage ", stage, " of ", stages);
  if (micro_batches < 1)
    throw ConfigError("pipeline: a step of ", micro_batches, " micro-batches; give it one at least");
  const int ahead = schedule == PipelineSchedule::kGPipe ? micro_batches : stages - 1 - stage;
  const int before = std::min(ahead, micro_batches);  // forwards that come before the first pair
  std::vector<PipelineAction> actions;
  for (int micro = 0; micro < before; ++micro) actions.push_back({false, micro});
  for (int micro = 0; micro < micro_batches; ++micro) {
    if (before + micro < micro_batches) actions.push_back({false, before + micro});
    actions.push_back({true, micro});
  }
  return actions;
}

// By dynamic programming: least[s][n] is the cost of the most expensive of s stages of the first n layers.
std::vector<int> partition(std::span<const double> costs, int stages) {
  const auto layers = std::ssize(costs);
  if (stages < 1) throw ConfigError("pipeline: ", stages, " stages; expected 1 or more");
  if (stages > layers) {
    throw ConfigError("pipeline: ", stages, " stages of ", layers, " layers; a stage would get none: use ", layers,
                      " ranks at most, or cut layers into smaller ones");
  }
  const auto size = static_cast<size_t>(layers);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(static_cast<size_t>(stages) + 1, std::vector<double>(size + 1, kNever));
  std::vector<std::vector<size_t>> first_of_last(least.size(), std::vector<size_t>(size + 1, 0));
  least[0][0] = 0;
  for (size_t s = 1; s < least.size(); ++s) {
    for (size_t n = s; n <= size; ++n) {
      double last = 0;  // cost of the last stage, from layer `first` on
      for (size_t first = n; first-- > s - 1;) {
        last += costs[first];
        const double most = std::max(least[s - 1][first], last);
        if (most < least[s][n]) {
          least[s][n] = most;
          first_of_last[s][n] = first;
        }
      }
    }
  }
  std::vector<int> firsts(static_cast<size_t>(stages));
  size_t end = size;
  for (size_t s = firsts.size(); s > 0; --s) {
    end = first_of_last[s][end];
    firsts[s - 1] = static_cast<int>(end);
  }
  return firsts;
}

}  // namespace lockstep::parallel
