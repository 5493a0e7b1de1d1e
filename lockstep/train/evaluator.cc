#include "lockstep/train/evaluator.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/train/bad_sample_advice.h"
#include "lockstep/train/best_metric.h"
#include "lockstep/train/phase.h"

namespace lockstep::train {

using Split = EvaluationSchedule::Split;

Evaluator::Evaluator(Parts& parts, Form& form, std::function<bool()> stop_asked, OnOutput on_output)
    : parts_(parts),
      form_(form),
      stop_asked_(std::move(stop_asked)),
      on_output_(std::move(on_output)),
      schedule_{.every = parts.plan.eval_every,
                .total_steps = parts.plan.total_steps,
                .has_validation = parts.data.validation != nullptr},
      bests_{{.step = parts.state.is_best ? parts.state.step : -1, .metric = parts.state.best}} {}

bool has_lost_ranks(const Error& error) {
  return dynamic_cast<const CommError*>(&error) != nullptr || dynamic_cast<const DesyncError*>(&error) != nullptr;
}

void Evaluator::on_chunk() const {
  parts_.world->self().beat();
  if (stop_asked_ && stop_asked_()) throw Error(kExitStoppedOnRequest, "asked to stop during the evaluation");
}

Evaluation Evaluator::evaluate_on(Split split) {
  const Phase phase(parts_.world->self(), cat("evaluating at step ", parts_.state.step));
  form_.sync_buffers();
  const auto& data = split == Split::kTest ? parts_.data.test : parts_.data.validation;
  Evaluation evaluation;
  parts_.optimizer->exchange_averages();
  try {
    const EvaluationOptions options{.chunk = parts_.plan.eval_batch,
                                    .channels_last = parts_.plan.channels_last,
                                    .amp = parts_.mixed->policy(),
                                    .device = parts_.device,
                                    .workers = parts_.workers,
                                    .skipped = parts_.skipped.get(),
                                    .on_chunk = [this] { on_chunk(); },
                                    .on_output = on_output_};
    with_advice(parts_, [&] {
      evaluation = train::evaluate(*parts_.recipe, parts_.model, *data, parts_.world->communicator(), options);
    });
  } catch (const Error& error) {
    if (!has_lost_ranks(error)) parts_.optimizer->exchange_averages();
    throw;
  }
  parts_.optimizer->exchange_averages();
  return evaluation;
}

bool Evaluator::evaluate(bool ends) {
  const int64_t step = parts_.state.step;
  const Split split = ends ? Split::kTest : schedule_.split();
  if (last_step_ == step && last_split_ == split) return false;
  last_step_ = step;
  last_split_ = split;
  last_ = evaluate_on(last_split_);
  if (split == schedule_.split()) judge(/*counts=*/!ends && schedule_.plateau_due(step));
  return true;
}

// The evaluation at a run's end depends on --steps, so it may be the best but counts for no early stop: a run that is
// extended must go on as one that was not stopped.
void Evaluator::judge(bool counts) {
  const BestMetric best(*parts_.recipe);
  const double metric = best.in(last_);
  if (counts) {
    const bool is_better = best.is_better(metric, parts_.state.best_at_interval);
    if (is_better) parts_.state.best_at_interval = metric;
    parts_.state.since_best = is_better ? 0 : parts_.state.since_best + 1;
  }
  if (!best.is_better(metric, parts_.state.best)) return;
  parts_.state.best = metric;
  bests_.push_back({parts_.state.step, metric});
}

void Evaluator::settle(const BestSaves& saves) {
  const auto lost = [&](const Best& best) { return best.step > saves.saved && best.step <= saves.lost; };
  // The first is none of this start's saves: it was there before, or there was none.
  const auto kept = std::remove_if(bests_.begin() + 1, bests_.end(), lost);
  if (kept == bests_.end()) return;
  bests_.erase(kept, bests_.end());
  parts_.state.best = bests_.back().metric;
}

void Evaluator::observe_plateau() {
  Scheduler& scheduler = parts_.state.scheduler;
  const int64_t step = parts_.state.step;
  if (!scheduler.goes_by_metric() || !schedule_.plateau_due(step)) return;
  const bool by_loss = scheduler.metric == "loss";
  scheduler.observe(step, by_loss ? last_.loss : last_.metrics.at(scheduler.metric).get<double>());
}

}  // namespace lockstep::train
