// A model from a checkpoint, made ready to evaluate or to predict.
#pragma once

#include <string>

#include "lockstep/amp/opt_level.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/train/auto_amp.h"
#include "lockstep/train/device.h"
#include "lockstep/train/recipe.h"
#include "lockstep/world/world.h"

namespace lockstep::cli {

amp::Policy policy_of(const train::ResolvedAmp& resolved);

// Ranks add their sums on CPUs, so NCCL would not notice that two of them have one GPU. On GPUs kernels repeat their
// bits, as in training by default.
c10::Device open_own_device(const train::DeviceChoice& wanted, World& world, const Logger& log);

struct ModelFile {
  const checkpoint::Value& root;
  std::string name;          // of the file
  std::string strip_prefix;  // of the names in it
  bool is_paddle = false;    // is_paddle_file(), asked when it was opened
};

struct ModelPlace {
  c10::Device device;
  bool channels_last = false;
  amp::Policy amp;
};

// Loads the file's weights, or their average where it has one, moves the model to its place and casts it. Rank 0 tells
// which prefix was dropped, and where the level is slow on this CPU. Throws as checkpoint::load_model().
void load_for_evaluation(const train::Model& model, const ModelFile& file, const ModelPlace& place, const World& world,
                         const Logger& log);

}  // namespace lockstep::cli
