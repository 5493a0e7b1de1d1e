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

// Whose batch has one sample.
enum class Lone { kLane, kAllLanes };

// The first step from `begin` on in which a lane, or all lanes together, have one sample; nothing if none has before
// the run's end.
std::optional<LoneSample> find_lone_sample(const Plan& plan, int64_t samples, int64_t begin, Lone lone = Lone::kLane);

// Tries the model on such a lane, if there will be one: in training mode, without gradients, on zeros. Buffers and
// random generators stay as they were. SyncBatchNorm, whose statistics are of all lanes, is tried on one sample of all
// lanes; and beside another lane, for libtorch's layers look at a lane's own batch first. Then it is a collective.
// Throws ConfigError, on all ranks, that names step, lane and --drop-last where BatchNorm refuses it; what else fails
// is left to the step.
void try_lone_sample(const Parts& parts);

}  // namespace lockstep::train
