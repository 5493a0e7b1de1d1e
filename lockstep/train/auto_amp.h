// The level that --amp auto stands for in a run. It is the same on every rank, and the run's files record it.
#pragma once

#include <optional>
#include <string>

#include "lockstep/train/origin.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

// The level and dtype that replace auto, and the reason, for people: "5.1 times fp32 here".
struct ResolvedAmp {
  amp::AmpLevel level;
  amp::HalfType dtype;
  std::string why;
  std::optional<bool> keep_batchnorm_fp32 = {};  // unset: the level's
};

// Returns rank 0's choice, on all ranks. On a CPU rank 0 chooses by its rates (amp/auto_level.h), and considers fp16
// alone if `dtype` is fp16. On a GPU the choice is O1. A collective.
ResolvedAmp resolve_amp(amp::HalfType dtype, DeviceKind device, World& world);

// Returns the level and dtype of the run that wrote a checkpoint.
ResolvedAmp amp_of_checkpoint(const Origin& origin);

// Returns the level and dtype of an evaluation: those that are given, else those of the checkpoint's run, with
// `why` "as in the run" where its level is taken. Throws ConfigError for a half type alone where no level has one. A
// collective.
ResolvedAmp amp_of_evaluation(const amp::RecordedPrecisionOptions& given, const std::optional<Origin>& origin,
                              DeviceKind device, World& world);

}  // namespace lockstep::train
