// A run: train_step() is one training step, run() what stands around it.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lockstep/amp/loss_scaler.h"
#include "lockstep/amp/opt_level.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/data/loader.h"
#include "lockstep/optim/any_optimizer.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/track/jsonl.h"
#include "lockstep/track/progress.h"
#include "lockstep/train/device_input.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/options/train_options.h"
#include "lockstep/train/origin.h"
#include "lockstep/train/plan.h"
#include "lockstep/train/recipe.h"
#include "lockstep/train/run_files.h"
#include "lockstep/train/training_state.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

// What the trainer is made of; set_up() makes it from options.
struct Parts {
  TrainOptions options;
  std::shared_ptr<Recipe> recipe;
  std::shared_ptr<World> world;
  Plan plan;
  data::Splits data;
  Model model;
  std::unique_ptr<optim::AnyOptimizer> optimizer;
  std::string sharding;  // of the optimizer, for people; empty: it is whole
  amp::Policy amp;
  std::string amp_why;  // why --amp auto took it; empty: it was asked for
  c10::Device device{c10::kCPU};
  amp::LossScaler scaler;
  TrainingState state;
  RunFiles files;
  std::string resumed_from;           // empty: a fresh run
  std::vector<std::string> changes;   // what the resumed run takes otherwise than its checkpoint, for people
  bool evaluated = false;             // metrics.jsonl has an evaluation of the step that the run goes on from
  std::vector<std::string> warnings;  // for people: checkpoints that could not be read
};

class Trainer {
 public:
  using Print = std::function<void(const std::string& text)>;
  using StopAsked = std::function<bool()>;

  // `print` receives what rank 0 shows people; `stop_asked` is asked by rank 0 at every step.
  Trainer(Parts parts, track::Progress::Options progress, Print print, StopAsked stop_asked, const Logger& log);

  // Trains to the end, or until rank 0 is asked to stop. Returns the process's exit code: 0, or 75 after a stop.
  int run();

 private:
  struct StepOutcome {
    double loss = 0;
    double lr = 0;
    double gradient_norm = 0;
    std::string overflow;  // of a step that the loss scaler skips: the first parameter whose gradient is not finite
    bool stop = false;     // rank 0 was asked to
  };

  StepOutcome train_step();
  parallel::StepResult run_lanes(const data::StepBatch& batch, double scale, bool stop);
  at::Tensor loss_of(const data::LaneBatch& lane);
  void tell_anomaly(const std::string& found);
  [[noreturn]] void fail_at(const std::string& where, const std::string& found);
  void after_step(const StepOutcome& outcome, int64_t samples);
  void write_comm_log();
  void warn_not_finite(double loss);
  void explain_overflow(StepOutcome& outcome, double scale);
  Evaluation evaluate_on(const data::Dataset& data);
  void evaluate_now();
  void observe_plateau();
  checkpoint::Value whole_state();
  std::string weights_sha256();
  std::string ema_sha256();
  std::string save();
  void interrupt();
  void finish();
  bool due(int64_t every) const;
  bool leads() const { return parts_.world->rank() == 0; }
  void say(const std::string& line);

  Parts parts_;
  parallel::DistributedDataParallel ddp_;
  data::Loader loader_;
  DeviceInput input_;
  checkpoint::CheckpointStore store_;
  std::optional<track::JsonlSink> metrics_;  // rank 0's
  track::Progress progress_;
  StopAsked stop_asked_;
  const Logger& log_;

  int64_t& step_ = parts_.state.step;
  const int64_t first_step_ = step_;
  int64_t saved_step_ = -1;
  int64_t evaluated_step_ = -1;
  int64_t best_step_ = -1;  // of the best evaluation in this start
  int64_t samples_trained_ = 0;
  double seconds_training_ = 0;
  double train_loss_ = 0;
  Evaluation evaluation_;
  Stopwatch since_start_;
};

}  // namespace lockstep::train
