#include "lockstep/parallel/pipeline/schedule.h"

#include <algorithm>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Division {
  double total = 0;
  std::vector<int> first_layers;
};

// The division whose total is the least, by dynamic programming. `join` gives the total of the stages before and one of
// such a cost behind them.
template <typename Join>
Division divide(std::span<const double> costs, int stages, const Join& join) {
  const size_t layers = costs.size();
  std::vector<std::vector<double>> least(static_cast<size_t>(stages) + 1, std::vector<double>(layers + 1, kNever));
  std::vector<std::vector<size_t>> first_of_last(least.size(), std::vector<size_t>(layers + 1, 0));
  least[0][0] = 0;
  for (size_t s = 1; s < least.size(); ++s) {
    for (size_t n = s; n <= layers; ++n) {
      double last = 0;  // cost of the last stage, from layer `first` on
      for (size_t first = n; first-- > s - 1;) {
        last += costs[first];
        const double total = join(least[s - 1][first], last);
        if (total >= least[s][n]) continue;
        least[s][n] = total;
        first_of_last[s][n] = first;
      }
    }
  }
  Division division{.total = least.back()[layers], .first_layers = std::vector<int>(static_cast<size_t>(stages))};
  size_t end = layers;
  for (size_t s = division.first_layers.size(); s > 0; --s) {
    end = first_of_last[s][end];
    division.first_layers[s - 1] = static_cast<int>(end);
  }
  return division;
}

}  // namespace

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

std::vector<int> partition(std::span<const double> costs, int stages) {
  const auto layers = std::ssize(costs);
  if (stages < 1) throw ConfigError("pipeline: ", stages, " stages; expected 1 or more");
  if (stages > layers) {
    throw ConfigError("pipeline: ", stages, " stages of ", layers, " layers; a stage would get none: use ", layers,
                      " ranks at most, or cut layers into smaller ones");
  }
  const double most = divide(costs, stages, [](double before, double last) { return std::max(before, last); }).total;
  return divide(costs, stages, [&](double before, double last) { return last > most ? kNever : before + last * last; })
      .first_layers;
}

}  // namespace lockstep::parallel
