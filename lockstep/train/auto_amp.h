// What --amp auto stands for in a run: the same on every rank, and kept by what the run writes.
#pragma once

#include <optional>
#include <string>

#include "lockstep/train/origin.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

// A level and a dtype in the place of auto, and why, for people: "5.1 times fp32 here".
struct ResolvedAmp {
  amp::AmpLevel level;
  amp::HalfType dtype;
  std::string why;
  std::optional<bool> keep_batchnorm_fp32 = {};  // unset: the level's
};

// Rank 0's choice for all ranks: on a CPU by its rates (amp/auto_level.h), of fp16 alone where `dtype` asks for it; on
// a GPU O1. A collective.
ResolvedAmp resolve_amp(amp::HalfType dtype, DeviceKind device, World& world);

// What the run of a checkpoint computed in.
ResolvedAmp amp_of_checkpoint(const Origin& origin);

}  // namespace lockstep::train
