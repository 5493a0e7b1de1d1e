// A forward of the smallest batch that a lane will have, before a run begins: BatchNorm, which can't be trained on one
// value a channel, would otherwise end it at an epoch's last step.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/train/parts.h"

namespace lockstep::train {

// A lane of one sample.
struct LoneSample {
  int64_t step = 0;  // of the run, from 0
  int lane = 0;
  bool operator==(const LoneSample&) const = default;
};

// The first step from `begin` on in which a lane has one sample; nothing if none has before the run's end.
std::optional<LoneSample> find_lone_sample(const Plan& plan, int64_t samples, int64_t begin);

// Tries the model on such a lane, if there will be one: in training mode, without gradients, on zeros. Buffers and
// random generators stay as they were. SyncBatchNorm is not tried, for its statistics are of all lanes. Throws
// ConfigError that names step, lane and --drop-last where BatchNorm refuses it; what else fails is left to the step.
void try_lone_sample(const Parts& parts);

}  // namespace lockstep::train
