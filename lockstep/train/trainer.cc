#include "lockstep/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "lockstep/amp/anomaly.h"
#include "lockstep/amp/autocast.h"
#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/loop/board_watch.h"
#include "lockstep/train/bad_sample_advice.h"
#include "lockstep/train/device.h"
#include "lockstep/train/setup.h"

namespace lockstep::train {
namespace {

data::Loader make_loader(const Parts& parts, const World::Lanes& own) {
  data::LaneSampler sampler({.dataset_size = parts.data.train->size(),
                             .lanes = parts.plan.lanes,
                             .batch_size = parts.plan.batch_size,
                             .seed = static_cast<uint64_t>(parts.options.seed),
                             .drop_last = parts.options.data.drop_last});
  return data::Loader(parts.data.train, sampler,
                      {.first_lane = own.first,
                       .last_lane = own.last,
                       .workers = parts.workers,
                       .transform = parts.recipe->batch_transform(),
                       .skipped = parts.skipped,
                       .watch = loop::board_watch(parts.world->self()),
                       .memory = batch_memory(parts.device)},
                      {.epoch = static_cast<uint32_t>(parts.plan.epoch_of(parts.state.step)),
                       .step = parts.plan.step_in_epoch(parts.state.step)});
}

// The seconds since its construction, without those that the run was paused for (Ctrl-Z).
class UnpausedWatch {
 public:
  explicit UnpausedWatch(const Board& board) : board_(board) {}
  // At least 0, as that clock may go back.
  double seconds() const { return std::max(0.0, static_cast<double>(board_.running_ns() - began_ns_) * 1e-9); }

 private:
  const Board& board_;
  int64_t began_ns_ = board_.running_ns();
};

constexpr unsigned kStop = 1, kSave = 2;  // of a step's decision

Evaluator::OnOutput observer_of(Tracking* tracking) {
  if (tracking == nullptr) return {};
  return [tracking](const data::Batch& batch, const at::Tensor& output) { tracking->observe(batch, output); };
}

}  // namespace

Trainer::Trainer(Parts parts, track::Progress::Options progress, Reporter::Print print, StopAsked stop_asked,
                 const Logger& log)
    : parts_(std::move(parts)),
      form_(make_form(parts_, log)),
      loader_(make_loader(parts_, form_->lanes())),
      input_(loader_, parts_.device, {.decoder = parts_.decoder}),
      tracking_(Tracking::of(parts_, log)),
      evaluator_(parts_, *form_, stop_asked, observer_of(tracking_.get())),
      non_finite_(parts_, *form_, log),
      reporter_(parts_, progress, std::move(print), tracking_.get()),
      saver_(parts_, reporter_, log),
      stop_asked_(std::move(stop_asked)) {
  if (parts_.options.ledger && !parts_.is_done) {
    const bool begins = parts_.state.step == 0 || parts_.forked;
    ledger_.emplace(parts_.files.ledger(), *parts_.world, loader_.sampler(), parts_.state.step, begins);
  }
}

int Trainer::run() {
  if (parts_.is_done) {
    reporter_.say(cat("nothing left to do: ", step_, " of ", parts_.plan.total_steps, " steps are done; raise ",
                      parts_.stops_early() ? "--early-stop" : "--epochs or --steps"));
    return 0;
  }
  try {
    return run_steps();
  } catch (const Error& error) {
    if (error.exit_code() != kExitStoppedOnRequest) {
      saver_.rescue();
      throw;
    }
  } catch (...) {
    saver_.rescue();
    throw;
  }
  interrupt();  // in an evaluation
  return kExitStoppedOnRequest;
}

int Trainer::run_steps() {
  if (parts_.state.unevaluated) {
    evaluate();
    parts_.state.unevaluated = false;
    evaluator_.observe_plateau();
    keep({});
  }
  while (step_ < parts_.plan.total_steps && !parts_.stops_early()) {
    const StepOutcome outcome = train_step();
    if (evaluator_.due()) evaluate();
    evaluator_.observe_plateau();
    keep(outcome);  // with what the evaluation has found
    if (outcome.stop && step_ < parts_.plan.total_steps) {
      interrupt();
      return kExitStoppedOnRequest;
    }
  }
  finish();
  return 0;
}

// One global batch: this rank's lanes forward and backward, the fold over all lanes, one update on all ranks.
Trainer::StepOutcome Trainer::train_step() {
  reporter_.begin_step();
  const UnpausedWatch watch(parts_.world->board());
  data::StepBatch batch;
  with_advice(parts_, [&] { batch = input_.next(); });
  double data_seconds = watch.seconds();
  reporter_.skipped();
  if (ledger_ && form_->notes_lanes()) ledger_->note(step_ + 1, batch);
  const auto result = run_lanes(batch, decide());
  const double computed = watch.seconds();
  const int64_t wait_ns = batch.wait_ns + input_.take_ahead();  // one rank's device computes yet
  data_seconds += watch.seconds() - computed;

  if (tracking_) tracking_->gradients(step_ + 1);
  amp::StepOptions clip{.max_norm = parts_.options.optimizer.clip};
  if (parts_.options.optimizer.clip_value > 0) clip.max_value = parts_.options.optimizer.clip_value;
  const double lr = follow_schedule();
  // run_lanes() has ended on all ranks, and with it their use of shared weights.
  const amp::StepReport update = parts_.mixed->step(*parts_.optimizer, result, clip);
  if (!parts_.mixed->scaler().enabled() && !std::isfinite(result.square_sum)) non_finite_.warn(result.loss);
  StepReport report{.loss = result.loss, .lr = lr, .gradient_norm = update.gradient_norm, .data_seconds = data_seconds};
  report.input = {.wait = std::min(data_seconds, static_cast<double>(wait_ns) * 1e-9), .read = batch.stats};
  if (!update.skipped) saver_.updated();
  if (update.skipped) report.overflow = non_finite_.overflow(result.loss, result.loss_scale);
  ++step_;
  if (tracking_) tracking_->weights(step_);
  report.samples = batch.global_samples;
  report.seconds = watch.seconds();
  reporter_.step(report);
  form_->report(reporter_);
  const auto decided = static_cast<unsigned>(result.decision);
  return {report, (decided & kStop) != 0 || result.others > 0, (decided & kSave) != 0};
}

// What travels with the step's gradients: rank 0 decides for all, and any rank may have been asked to stop.
double Trainer::decide() {
  const bool save = leads() && parts_.plan.save_seconds > 0 && since_save_.seconds() >= parts_.plan.save_seconds;
  return (stop_asked_() ? kStop : 0U) + (save ? kSave : 0U);
}

// Gives the optimizer the rate, and the momentum, of this step. Returns the rate.
double Trainer::follow_schedule() {
  const double lr = parts_.state.scheduler.lr(step_);
  parts_.optimizer->set_lr(lr);
  if (const auto momentum = parts_.state.scheduler.momentum(step_)) parts_.optimizer->set_momentum(*momentum);
  return lr;
}

parallel::StepResult Trainer::run_lanes(data::StepBatch& batch, double decision) {
  const amp::CastCacheScope one_cast_a_weight;
  std::optional<amp::AnomalyWatch> watch;
  if (parts_.options.detect_anomaly) watch.emplace(*parts_.model.module);
  const auto result = form_->run(step_, batch, decision);
  if (watch && !std::isfinite(result.square_sum) && !parts_.mixed->scaler().enabled()) {
    non_finite_.tell_anomaly(watch->found().value_or(""));
  }
  return result;
}

// An evaluation that fails ends the run, with a checkpoint of the steps before it. Where later steps depend on what it
// would have found there is none: a resume from it would go on without.
void Trainer::evaluate(bool ends) {
  evaluator_.settle(saver_.best_saves());
  form_->make_room();
  try {
    if (!evaluator_.evaluate(ends)) return;
  } catch (const Error& error) {
    if (error.exit_code() == kExitStoppedOnRequest) {
      parts_.state.unevaluated = !ends;
      throw;
    }
    const bool goes_on_without = !parts_.state.scheduler.goes_by_metric() && parts_.options.early_stop == 0;
    if (goes_on_without && !has_lost_ranks(error) && !saver_.has_saved()) save(/*wait=*/true);
    throw;
  }
  reporter_.skipped();
  reporter_.evaluation(evaluator_.last(), evaluator_.last_was_test(), evaluator_.is_best());
  if (tracking_) tracking_->pictures(evaluator_.last_was_test() ? "test" : "validation");
}

bool Trainer::due(int64_t every) const { return step_ >= parts_.plan.total_steps || at_interval(step_, every); }

// Buffers are rank 0's everywhere before they are saved.
void Trainer::prepare_state() {
  form_->sync_buffers();
  follow_schedule();  // the next step's, as PyTorch saves it
  if (parts_.skipped) parts_.state.skipped = parts_.skipped->all();
  evaluator_.settle(saver_.best_saves());
  parts_.state.is_best = evaluator_.step_is_best();
}

void Trainer::keep(const StepOutcome& outcome) {
  if (due(parts_.plan.save_every) || outcome.save || evaluator_.is_best()) {
    save(/*wait=*/step_ >= parts_.plan.total_steps);
  } else if (saver_.snapshot_due()) {
    prepare_state();
    saver_.snapshot();
  }
  saver_.look();
  saver_.prepare();
}

void Trainer::save(bool wait) {
  prepare_state();
  since_save_.restart();
  if (wait) {
    saver_.save_and_wait(parts_.state.is_best);
  } else {
    saver_.save(parts_.state.is_best);
  }
}

void Trainer::interrupt() {
  prepare_state();
  non_finite_.tell_count();
  saver_.save_interrupted(parts_.files.interrupted());
  if (leads()) reporter_.stopped();
}

// Hashes the weights, or their fp32 masters where there are any. Returns "" on ranks other than 0. A collective.
std::string Trainer::weights_sha256() {
  const auto masters = parts_.optimizer->masters();
  return leads() ? checkpoint::weights_sha256(state_with(*parts_.model.module, *parts_.optimizer, masters)) : "";
}

// Hashes the weights' average. Returns "" if none is kept, and on ranks other than 0. A collective.
std::string Trainer::ema_sha256() {
  if (parts_.options.optimizer.ema == 0) return "";
  parts_.optimizer->exchange_averages();
  std::string hash = weights_sha256();
  parts_.optimizer->exchange_averages();
  return hash;
}

// Where all ranks' pictures were decoded, for those that come encoded. A collective then.
void Trainer::tell_decoded() {
  if (input_.decoder() == nullptr) return;
  image::DecodedCounts all;
  for (const std::string& lines : comm::gather_texts(parts_.world->communicator(), input_.decoded().lines())) {
    all += image::DecodedCounts::of(lines);
  }
  reporter_.decoded(all);
}

void Trainer::finish() {
  if (parts_.stops_early()) {
    reporter_.say(cat("stopped early at step ", step_, ": no better ", parts_.recipe->best_by(), " for ",
                      parts_.state.since_best, " evaluations"));
  }
  evaluate(/*ends=*/true);
  if (!saver_.has_saved() && !saver_.began_with_file()) save(/*wait=*/true);
  evaluator_.settle(saver_.best_saves());
  const std::string weights = weights_sha256(), ema = ema_sha256();
  non_finite_.tell_count();
  tell_decoded();
  if (leads()) reporter_.done(evaluator_.last(), weights, ema);
  if (tracking_) tracking_->end();
}

}  // namespace lockstep::train
