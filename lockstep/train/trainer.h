// The training loop: train_step() is one step, and run() is the loop around it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/base/log.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/data/loader.h"
#include "lockstep/train/device_input.h"
#include "lockstep/train/evaluator.h"
#include "lockstep/train/form.h"
#include "lockstep/train/ledger.h"
#include "lockstep/train/non_finite.h"
#include "lockstep/train/parts.h"
#include "lockstep/train/reporter.h"
#include "lockstep/train/saver.h"
#include "lockstep/train/tracking.h"

namespace lockstep::train {

class Trainer {
 public:
  using StopAsked = std::function<bool()>;

  // `print` receives rank 0's texts for people. Every rank calls `stop_asked` at every step.
  Trainer(Parts parts, track::Progress::Options progress, Reporter::Print print, StopAsked stop_asked,
          const Logger& log);

  // Trains to the end, or until rank 0 is asked to stop. Returns the process's exit code: 0, or 75 after a stop.
  int run();

 private:
  struct StepOutcome {
    StepReport report;
    bool stop = false;  // some rank of rank 0's node was asked to
    bool save = false;  // --save-every of so many minutes is due
  };

  int run_steps();
  StepOutcome train_step();
  double decide();
  double follow_schedule();
  parallel::StepResult run_lanes(data::StepBatch& batch, double decision);
  void evaluate(bool ends = false);
  void prepare_state();
  void keep(const StepOutcome& outcome);
  void save(bool wait);
  void interrupt();
  std::string weights_sha256();
  std::string ema_sha256();
  void tell_decoded();
  void finish();
  bool due(int64_t every) const;
  bool leads() const { return parts_.world->rank() == 0; }

  Parts parts_;
  std::unique_ptr<Form> form_;
  data::Loader loader_;
  DeviceInput input_;
  std::optional<Ledger> ledger_;        // with --ledger
  std::unique_ptr<Tracking> tracking_;  // null: nothing is tracked here
  Evaluator evaluator_;
  NonFinite non_finite_;
  Reporter reporter_;
  Saver saver_;
  StopAsked stop_asked_;

  int64_t& step_ = parts_.state.step;
  Stopwatch since_save_;
};

}  // namespace lockstep::train
