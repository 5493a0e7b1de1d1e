// Evaluates the model of a run under way, with the weights' average if the run keeps one. evaluate() does so at most
// once after each step, and the best result is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/train/best_saves.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/evaluation_schedule.h"
#include "lockstep/train/form.h"
#include "lockstep/train/parts.h"

namespace lockstep::train {

// Whether the ranks are no longer together: no collective may follow.
bool has_lost_ranks(const Error& error);

class Evaluator {
 public:
  using OnOutput = std::function<void(const data::Batch& batch, const at::Tensor& output)>;

  // Both outlive this. parts.state.best is kept up to date. A rank for which `stop_asked` is true ends the evaluation
  // under way on all ranks, by an Error of kExitStoppedOnRequest. `on_output`: EvaluationOptions::on_output.
  Evaluator(Parts& parts, Form& form, std::function<bool()> stop_asked = {}, OnOutput on_output = {});

  bool due() const { return schedule_.due(parts_.state.step); }

  // Evaluates after the current step, unless that has been done: on the data that decide what is best, or, if the run
  // `ends` here, on the test data, which decide it only where there are no others. Returns whether it was done now. A
  // collective. What it throws, all ranks throw; unless it has lost the others, the weights are as before.
  bool evaluate(bool ends = false);

  // Takes back the bests whose files were not saved: `best` is the metric of best.pt again.
  void settle(const BestSaves& saves);

  // Gives the metrics of this step's evaluation, which has been made, to a plateau schedule, if the run has one. They
  // are equal on all ranks.
  void observe_plateau();

  // The last evaluation, and whether it was of the test data.
  const Evaluation& last() const { return last_; }
  bool last_was_test() const { return last_split_ == EvaluationSchedule::Split::kTest; }
  // Returns whether the last evaluation is this step's and the best so far.
  bool is_best() const { return step_is_best() && last_split_ == schedule_.split(); }
  // Returns whether this step has been found to be the best so far, whatever was evaluated after that.
  bool step_is_best() const { return bests_.back().step == parts_.state.step; }

 private:
  Evaluation evaluate_on(EvaluationSchedule::Split split);
  void on_chunk() const;
  void judge(bool counts);

  Parts& parts_;
  Form& form_;
  std::function<bool()> stop_asked_;
  OnOutput on_output_;
  EvaluationSchedule schedule_;
  Evaluation last_;
  EvaluationSchedule::Split last_split_ = EvaluationSchedule::Split::kTest;
  int64_t last_step_ = -1;
  struct Best {
    int64_t step = -1;
    double metric = 0;
  };
  std::vector<Best> bests_;  // since this start, each better than those before it; the first is that of the start
};

}  // namespace lockstep::train
