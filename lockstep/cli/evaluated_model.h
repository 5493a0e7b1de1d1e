// A model from a checkpoint, made ready to evaluate or to predict.
#pragma once

#include <string>

#include "lockstep/amp/opt_level.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/load_model.h"
#include "lockstep/train/auto_amp.h"
#include "lockstep/train/device.h"
#include "lockstep/train/options/weights_options.h"
#include "lockstep/train/recipe.h"
#include "lockstep/world/world.h"

namespace lockstep::cli {

amp::Policy policy_of(const train::ResolvedAmp& resolved);

// Ranks add their sums on CPUs, so NCCL would not notice that two of them have one GPU. On GPUs kernels repeat their
// bits, as in training by default.
c10::Device open_own_device(const train::DeviceChoice& wanted, World& world, const Logger& log);

struct ModelFile {
  const checkpoint::Value& root;
  std::string name;  // of the file
  const train::WeightsOptions& weights;
  bool is_paddle = false;  // is_paddle_file(), asked when it was opened

  // What the options ask for of it.
  checkpoint::LoadModelOptions options() const;
};

struct ModelPlace {
  c10::Device device;
  bool channels_last = false;
  amp::Policy amp;
};

// Loads the file's weights, moves the model to its place and casts it. Rank 0 tells which of the file's were taken,
// where it has several, and where the level is slow on this CPU. Returns the name under which the file has them, empty
// for its own tensors. Throws as checkpoint::load_model().
std::string load_for_evaluation(const train::Model& model, const ModelFile& file, const ModelPlace& place,
                                const World& world, const Logger& log, const data::Dataset* data = nullptr);

}  // namespace lockstep::cli
