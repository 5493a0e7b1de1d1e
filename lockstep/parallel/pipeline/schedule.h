// The order in which the stages of a pipeline compute the micro-batches of a step.
//
// GPipe (Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism", 2019) computes
// all forwards, then all backwards. 1F1B (Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN
// training", 2019, with a flush at each step's end) begins each backward as soon as it can: a stage keeps the
// activations of at most as many micro-batches as there are stages from it on. A step takes both the same time, of
// which a stage is idle for (stages - 1) / (micro-batches + stages - 1), the bubble.
#pragma once

#include <span>
#include <vector>

#include "lockstep/parallel/options/pipeline_schedule.h"

namespace lockstep::parallel {

struct PipelineAction {
  bool backward = false;
  int micro_batch = 0;
  bool operator==(const PipelineAction&) const = default;
};

// What a stage does in a step, in order. Forwards and backwards are each in the order of the micro-batches, so
// gradients add up in that order whatever the schedule. Throws ConfigError for a stage that is none of `stages`, or no
// micro-batches.
std::vector<PipelineAction> actions_of(PipelineSchedule schedule, int stages, int stage, int micro_batches);

// Divides layers with such costs among stages, each of which gets one at least and those that follow each other, so
// that the most expensive stage costs the least. Returns the number of each stage's first layer. Throws ConfigError for
// more stages than layers.
std::vector<int> partition(std::span<const double> costs, int stages);

}  // namespace lockstep::parallel
