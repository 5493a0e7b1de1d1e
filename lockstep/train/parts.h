// The parts that a run is made of, as set_up() (setup.h) makes them from options.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/findings.h"
#include "lockstep/data/skipped_samples.h"
#include "lockstep/image/device/jpeg_decoder.h"
#include "lockstep/optim/any_optimizer.h"
#include "lockstep/parallel/pipeline/stage_plan.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/options/train_options.h"
#include "lockstep/train/plan.h"
#include "lockstep/train/recipe.h"
#include "lockstep/train/run_disks.h"
#include "lockstep/train/training_state.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

struct Parts {
  TrainOptions options;
  TrainOptions resolved;  // the same with everything that was left open resolved; config.toml holds these
  config::Record usual;   // what a run with the recipe's defaults records
  std::shared_ptr<Recipe> recipe;
  std::shared_ptr<World> world;
  Plan plan;
  data::Splits data;
  DataFiles files_of_data;                        // of all parts, for data.list
  std::shared_ptr<data::Findings> findings;       // of rank 0's look at the data, for data.scan
  int workers = 0;                                // threads that load data
  std::shared_ptr<data::SkippedSamples> skipped;  // that can't be read; null without --skip-bad
  Model model;
  parallel::StagePlan stages;  // of the model, with --parallel pipeline
  std::unique_ptr<optim::AnyOptimizer> optimizer;
  std::string sharding;                        // of the optimizer, for people; empty: it is whole
  std::unique_ptr<amp::MixedPrecision> mixed;  // of the model and the optimizer
  std::string amp_why;                         // the reason for --amp auto's choice; empty: the user chose
  c10::Device device{c10::kCPU};
  std::shared_ptr<image::JpegDecoder> decoder = {};  // of training pictures that come encoded; null: none do
  std::string device_text;                           // for people: "NVIDIA H200 (cuda:0), 2 ranks share cuda:0"
  TrainingState state;
  bool is_done = false;  // the run has ended at its step, with the results in final.json: a resume has nothing to do
  RunFiles files;
  RunDisks disks;
  std::string program = "lockstep";    // how the user calls it
  std::string resume_command;          // the command line that goes on with this run
  std::string resumed_from;            // empty: a fresh run
  bool forked = false;                 // from another run's checkpoint
  std::vector<std::string> dropped;    // what --overwrite has removed, for people
  std::vector<std::string> changes;    // options in which the resumed run differs from its checkpoint, for people
  std::string loaded;                  // the weights of --load, for people; empty: none were loaded
  std::vector<std::string> evaluated;  // splits whose evaluation at the step that it resumes from is in metrics.jsonl
  std::vector<std::string> warnings;   // for people: checkpoints that could not be read, and which was

  // Whether this rank is one of the savers.
  bool saves() const { return RunDisks::has(disks.savers, world->rank()); }
  // Whether --early-stop ends the run: the metric has not become better for so many evaluations.
  bool stops_early() const { return options.early_stop > 0 && state.since_best >= options.early_stop; }
};

}  // namespace lockstep::train
