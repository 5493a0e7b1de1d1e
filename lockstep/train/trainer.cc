#include "lockstep/train/trainer.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "lockstep/amp/anomaly.h"
#include "lockstep/amp/autocast.h"
#include "lockstep/amp/fused_step.h"
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/train/memory_format.h"

namespace lockstep::train {
namespace {

// Steps whose reductions are written to metrics.jsonl.
constexpr int64_t kFirstCommLog = 10, kCommLogEvery = 100;
// A scale of 65536 has gone down to 1 after 16 overflows; from there on it is not the scale's fault.
constexpr int kOverflowsToWarn = 17;

data::Loader make_loader(const Parts& parts) {
  const auto& world = *parts.world;
  const auto own = world.own_lanes(parts.plan.lanes);
  data::LaneSampler sampler({.dataset_size = parts.data.train->size(),
                             .lanes = parts.plan.lanes,
                             .batch_size = parts.plan.batch_size,
                             .seed = static_cast<uint64_t>(parts.options.seed)});
  return data::Loader(
      parts.data.train, sampler,
      {.first_lane = own.first, .last_lane = own.last, .workers = parts.options.data.workers.value_or(0)},
      {.epoch = static_cast<uint32_t>(parts.plan.epoch_of(parts.state.step)),
       .step = parts.plan.step_in_epoch(parts.state.step)});
}

std::optional<at::ScalarType> wire_of(const TrainOptions& options) {
  if (options.parallel.comm_dtype == parallel::CommType::kBf16) return at::kBFloat16;
  return std::nullopt;
}

}  // namespace

Trainer::Trainer(Parts parts, track::Progress::Options progress, Print print, StopAsked stop_asked, const Logger& log)
    : parts_(std::move(parts)),
      ddp_(parts_.model.module, parts_.world,
           {.buckets = {.wire = wire_of(parts_.options)}, .seed = static_cast<uint64_t>(parts_.options.seed)}),
      loader_(make_loader(parts_)),
      input_(loader_, parts_.device),
      store_(parts_.files.checkpoints(), {.keep_last = parts_.options.keep}),
      progress_(progress, std::move(print)),
      stop_asked_(std::move(stop_asked)),
      log_(log) {
  if (leads()) metrics_.emplace(parts_.files.metrics());
}

int Trainer::run() {
  if (step_ >= parts_.plan.total_steps && std::filesystem::exists(parts_.files.final_json())) {
    if (leads())
      say(cat("nothing left to do: ", step_, " of ", parts_.plan.total_steps,
              " steps are done; raise --epochs or --steps"));
    return 0;
  }
  while (step_ < parts_.plan.total_steps) {
    const StepOutcome outcome = train_step();
    if (due(parts_.plan.eval_every)) evaluate_now();
    observe_plateau();
    if (due(parts_.plan.save_every) || best_step_ == step_) save();  // with what the evaluation has found
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
  const Stopwatch watch;
  const data::StepBatch batch = input_.next();
  const double scale = parts_.scaler.scale();
  const bool stop = leads() && stop_asked_();
  const auto result = run_lanes(batch, scale, stop);

  StepOutcome outcome{.loss = result.loss, .lr = parts_.state.scheduler.lr(step_), .stop = result.decision != 0};
  if (!parts_.scaler.enabled() && !std::isfinite(result.square_sum)) warn_not_finite(result.loss);
  amp::StepOptions clip{.max_norm = parts_.options.optimizer.clip};
  if (parts_.options.optimizer.clip_value > 0) clip.max_value = parts_.options.optimizer.clip_value;
  parts_.optimizer->set_lr(outcome.lr);
  // run_lanes() has ended on all ranks, and with it their use of shared weights.
  const amp::StepReport report = amp::fused_step(*parts_.optimizer, parts_.scaler, result.square_sum, clip);
  outcome.gradient_norm = report.gradient_norm;
  if (report.skipped) explain_overflow(outcome, scale);
  ++step_;
  seconds_training_ += watch.seconds();
  after_step(outcome, batch.global_samples);
  return outcome;
}

parallel::StepResult Trainer::run_lanes(const data::StepBatch& batch, double scale, bool stop) {
  const amp::CastCacheScope one_cast_a_weight;
  std::optional<amp::AnomalyWatch> watch;
  if (parts_.options.detect_anomaly) watch.emplace(*parts_.model.module);
  const auto result = ddp_.run(
      step_, batch, [this](const data::LaneBatch& lane) { return loss_of(lane); }, scale, stop ? 1 : 0);
  if (watch && !std::isfinite(result.square_sum) && !parts_.scaler.enabled()) tell_anomaly(watch->found().value_or(""));
  return result;
}

// Gradients are not finite, and no scaler lowers its scale for that. Ends all ranks, if one has found where. A
// collective.
void Trainer::tell_anomaly(const std::string& found) {
  const auto founds = comm::gather_texts(parts_.world->communicator(), found);
  for (size_t rank = 0; rank < founds.size(); ++rank) {
    if (!founds[rank].empty()) fail_at(cat("rank ", rank), founds[rank]);
  }
}

void Trainer::fail_at(const std::string& where, const std::string& found) {
  throw DataError("step ", step_ + 1, ", ", where, ": the first value that is not finite came from ", found,
                  "; look at what goes in there, lower --lr, or --clip the gradient");
}

at::Tensor Trainer::loss_of(const data::LaneBatch& lane) {
  std::optional<amp::AnomalyWatch> watch;  // SyncBatchNorm's lanes are on threads of their own
  if (parts_.options.detect_anomaly) watch.emplace(*parts_.model.module);
  const amp::AutocastScope autocast(parts_.amp, parts_.device.type());
  const at::Tensor output = parts_.model.forward(lane.data.contiguous(memory_format(parts_.plan.channels_last)));
  at::Tensor loss = parts_.recipe->loss(output, lane.target);
  if (watch && !std::isfinite(loss.item<double>())) {
    fail_at(cat("rank ", parts_.world->rank(), ", lane ", lane.lane), watch->found().value_or("the loss"));
  }
  return loss;
}

void Trainer::after_step(const StepOutcome& outcome, int64_t samples) {
  auto& board = parts_.world->board();
  parts_.world->self().step.store(static_cast<uint64_t>(step_), std::memory_order_relaxed);
  parts_.world->self().beat_ns.store(monotonic_ns(), std::memory_order_relaxed);
  uint64_t none = 0;
  board.first_step_ns.compare_exchange_strong(none, static_cast<uint64_t>(monotonic_ns()));
  samples_trained_ += samples;
  train_loss_ = outcome.loss;
  if (!leads()) return;
  const double per_second = static_cast<double>(samples_trained_) / seconds_training_;
  const int64_t epoch = parts_.plan.epoch_of(step_ - 1) + 1;
  track::Record record = {{"kind", "train"},      {"step", step_},    {"epoch", epoch},
                          {"loss", outcome.loss}, {"lr", outcome.lr}, {"gradient_norm", outcome.gradient_norm}};
  if (parts_.scaler.enabled()) record["loss_scale"] = parts_.scaler.scale();
  if (!outcome.overflow.empty()) {
    record["skipped"] = true;
    record["overflow"] = outcome.overflow;
  }
  metrics_->write(record);
  if (step_ == kFirstCommLog || step_ % kCommLogEvery == 0) write_comm_log();
  const auto left = static_cast<double>((parts_.plan.total_steps - step_) * parts_.plan.global_batch());
  progress_.update({.step = step_,
                    .steps = parts_.plan.total_steps,
                    .epoch = epoch,
                    .epochs = parts_.plan.epochs,
                    .loss = outcome.loss,
                    .lr = outcome.lr,
                    .samples_per_second = per_second,
                    .seconds_left = left / per_second});
}

// What DistributedDataParallel's logging data hold, of this rank and the last step.
void Trainer::write_comm_log() {
  const auto ms = [](double seconds) { return seconds * 1e3; };
  const parallel::CommLog log = ddp_.comm_log();
  auto buckets = nlohmann::ordered_json::array();
  for (size_t i = 0; i < ddp_.reducer().buckets(); ++i) {
    const parallel::BucketLog& bucket = ddp_.reducer().log(i);
    buckets.push_back({{"label", bucket.label},
                       {"bytes", bucket.bytes},
                       {"in_flight_ms", ms(bucket.in_flight)},
                       {"waited_ms", ms(bucket.waited)}});
  }
  metrics_->write({{"kind", "comm"},
                   {"step", step_},
                   {"bytes", log.bytes},
                   {"in_flight_ms", ms(log.in_flight)},
                   {"waited_ms", ms(log.waited)},
                   {"overlap", log.overlap()},
                   {"buckets", buckets}});
}

void Trainer::warn_not_finite(double loss) {
  const std::string where = ddp_.reducer().first_not_finite();
  const std::string line = cat("step ", step_ + 1, ": the gradient of ", where, " is not finite (loss ", loss, ')');
  if (parts_.options.on_nan == OnNan::kStop) {
    throw DataError(line, "; ended by --on-nan stop; lower --lr, or --clip the gradient");
  }
  if (leads()) log_.warning(line, "; lower --lr, --clip the gradient, or end such runs by --on-nan stop");
}

// A step that the scaler skips: where the gradients overflowed. Some are normal, while the scale looks for its place.
void Trainer::explain_overflow(StepOutcome& outcome, double scale) {
  outcome.overflow = ddp_.reducer().first_not_finite();
  parts_.world->self().overflow.set(cat("step ", step_ + 1, ": ", outcome.overflow));
  const int in_a_row = parts_.scaler.skipped_in_a_row();
  if (!leads() || in_a_row != kOverflowsToWarn) return;
  const char* advice = !parts_.scaler.options().dynamic ? "lower --loss-scale, or leave it dynamic"
                       : parts_.amp.cast_model          ? "lower --lr, or use --dtype bf16 or --amp O1"
                                                        : "lower --lr, or use --dtype bf16";
  log_.warning(cat("step ", step_ + 1, ": ", in_a_row, " steps in a row were skipped, the gradient of ",
                   outcome.overflow, " is not finite at a loss scale of ", scale, " (loss ", outcome.loss, "); ",
                   advice));
}

// Of the weights' average where there is one.
Evaluation Trainer::evaluate_on(const data::Dataset& data) {
  ddp_.sync_buffers();
  parts_.optimizer->exchange_averages();
  Evaluation evaluation = evaluate(*parts_.recipe, parts_.model, data, parts_.world->communicator(),
                                   {.chunk = parts_.plan.eval_batch,
                                    .channels_last = parts_.plan.channels_last,
                                    .amp = parts_.amp,
                                    .device = parts_.device});
  parts_.optimizer->exchange_averages();
  return evaluation;
}

// On the validation part where there is one: the test data is then for the end alone.
void Trainer::evaluate_now() {
  if (evaluated_step_ == step_) return;
  const bool at_end = step_ >= parts_.plan.total_steps;
  const auto& data = parts_.data.validation != nullptr && !at_end ? parts_.data.validation : parts_.data.test;
  evaluation_ = evaluate_on(*data);
  evaluated_step_ = step_;
  const auto best = evaluation_.metrics.value(parts_.recipe->best_by(), std::numeric_limits<double>::lowest());
  if (best > parts_.state.best) {
    parts_.state.best = best;
    best_step_ = step_;
  }
  if (!leads()) return;
  const int64_t epoch = parts_.plan.epoch_of(step_ - 1) + 1;
  track::Record record = {{"kind", "eval"},
                          {"step", step_},
                          {"epoch", epoch},
                          {"loss", evaluation_.loss},
                          {"samples", evaluation_.samples}};
  std::string line = cat("step ", step_, ": loss ", evaluation_.loss);
  for (const auto& [name, value] : evaluation_.metrics.items()) {
    record[name] = value;
    line += cat(", ", name, ' ', value.dump());
  }
  if (!(parts_.evaluated && step_ == first_step_)) metrics_->write(record);
  say(cat(line, " on ", evaluation_.samples, data == parts_.data.test ? " test" : " validation", " samples"));
}

// Only what any run with these options evaluates, however often it is stopped, and on what data: a run's last
// evaluation is of the test data, and whether it is the last is up to --steps. Equal on all ranks, as evaluations are.
void Trainer::observe_plateau() {
  Scheduler& scheduler = parts_.state.scheduler;
  if (!scheduler.goes_by_metric() || step_ % parts_.plan.eval_every != 0) return;
  const bool other_data = step_ >= parts_.plan.total_steps && parts_.data.validation != nullptr;
  const Evaluation seen = other_data ? evaluate_on(*parts_.data.validation) : evaluation_;
  scheduler.observe(step_, scheduler.metric == "loss" ? seen.loss : seen.metrics.at(scheduler.metric).get<double>());
}

bool Trainer::due(int64_t every) const { return step_ >= parts_.plan.total_steps || (every > 0 && step_ % every == 0); }

// Buffers are rank 0's everywhere before they are saved. Whole on rank 0, which alone writes it.
checkpoint::Value Trainer::whole_state() {
  ddp_.sync_buffers();
  parts_.optimizer->set_lr(parts_.state.scheduler.lr(step_));  // the next step's, as PyTorch saves it
  return to_checkpoint(parts_.state, *parts_.model.module, *parts_.optimizer, parts_.scaler);
}

std::string Trainer::save() {
  const checkpoint::Value state = whole_state();
  saved_step_ = step_;
  if (!leads()) return "";
  const std::string path = store_.save(step_, state);
  if (best_step_ == step_) store_.mark_best(step_);
  std::remove(parts_.files.interrupted().c_str());
  parts_.world->board().saved.set(cat("checkpoint ", path));
  return path;
}

void Trainer::interrupt() {
  const checkpoint::Value state = whole_state();
  if (!leads()) return;
  checkpoint::write_pt(state, parts_.files.interrupted());
  parts_.world->board().saved.set(cat("checkpoint ", parts_.files.interrupted()));
  progress_.finish();
  say(cat("stopped at step ", step_, ", saved ", parts_.files.interrupted(), "; go on with: lockstep train ",
          parts_.recipe->name(), " --resume ", parts_.files.folder));
}

// Of the fp32 masters, where there are any. A collective; on rank 0 alone.
std::string Trainer::weights_sha256() {
  const auto masters = parts_.optimizer->masters();
  return leads() ? checkpoint::weights_sha256(state_with(*parts_.model.module, masters)) : "";
}

std::string Trainer::ema_sha256() {
  parts_.optimizer->exchange_averages();
  std::string hash = weights_sha256();
  parts_.optimizer->exchange_averages();
  return hash;
}

void Trainer::finish() {
  evaluate_now();
  if (saved_step_ != step_) save();
  const std::string weights = weights_sha256(), ema = parts_.options.optimizer.ema > 0 ? ema_sha256() : "";
  if (!leads()) return;
  const double seconds = since_start_.seconds();
  nlohmann::ordered_json final = {
      {"recipe", parts_.recipe->name()},
      {"steps", step_},
      {"epochs", static_cast<double>(step_) / static_cast<double>(parts_.plan.steps_per_epoch)},
      {"loss", evaluation_.loss},
      {"train_loss", train_loss_},
      {"metrics", evaluation_.metrics},
      {"images_per_second", seconds_training_ > 0 ? static_cast<double>(samples_trained_) / seconds_training_ : 0},
      {"world_size", parts_.world->size()},
      {"lanes", parts_.plan.lanes},
      {"seconds", seconds},
      {"weights_sha256", weights}};
  if (!ema.empty()) final["ema_sha256"] = ema;
  config::OptionSet own;
  parts_.recipe->declare(own);
  for (const auto& [name, value] : own.record()) final[name] = value;
  write_text(parts_.files.final_json(), final.dump(2) + '\n');
  progress_.finish();
  say(cat("done: ", step_, " steps in ", std::lround(seconds), " s; ", parts_.files.final_json(), ", weights ",
          weights.substr(0, 12), "…"));
}

void Trainer::say(const std::string& line) {
  if (!parts_.options.quiet) progress_.line(line);
}

}  // namespace lockstep::train
