// The names of the orders in which a pipeline's stages compute micro-batches (parallel/pipeline/schedule.h).
#pragma once

#include <array>

#include "lockstep/config/option_set.h"

namespace lockstep::parallel {

enum class PipelineSchedule { kGPipe, k1F1B };
constexpr auto words(PipelineSchedule) {
  return std::to_array<config::Word<PipelineSchedule>>(
      {{PipelineSchedule::kGPipe, "gpipe"}, {PipelineSchedule::k1F1B, "1f1b"}});
}

}  // namespace lockstep::parallel
