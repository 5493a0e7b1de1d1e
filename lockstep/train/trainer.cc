#include "lockstep/train/trainer.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/pt_writer.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/optim/clip.h"
#include "lockstep/train/memory_format.h"

namespace lockstep::train {
namespace {

// Steps whose reductions are written to metrics.jsonl.
constexpr int64_t kFirstCommLog = 10, kCommLogEvery = 100;

data::Loader make_loader(const Parts& parts) {
  const auto& world = *parts.world;
  const auto own = world.own_lanes(parts.plan.lanes);
  data::LaneSampler sampler({.dataset_size = parts.data.train->size(),
                             .lanes = parts.plan.lanes,
                             .batch_size = parts.plan.batch_size,
                             .seed = static_cast<uint64_t>(parts.options.seed)});
  return data::Loader(parts.data.train, sampler,
                      {.first_lane = own.first, .last_lane = own.last, .workers = parts.options.workers.value_or(0)},
                      {.epoch = static_cast<uint32_t>(parts.plan.epoch_of(parts.state.step)),
                       .step = parts.plan.step_in_epoch(parts.state.step)});
}

std::optional<at::ScalarType> wire_of(const config::TrainOptions& options) {
  if (options.comm_dtype == config::CommType::kBf16) return at::kBFloat16;
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

  StepOutcome outcome{
      .loss = result.loss, .lr = optim::lr_at(parts_.plan.schedule, step_), .stop = result.decision != 0};
  outcome.gradient_norm = std::sqrt(result.square_sum) / scale;
  const bool finite = std::isfinite(result.square_sum);
  outcome.skipped = parts_.scaler.update(!finite);
  if (!finite && !outcome.skipped) warn_not_finite(result.loss);
  if (!outcome.skipped) {
    const double clip = parts_.options.clip > 0 ? optim::clip_factor(outcome.gradient_norm, parts_.options.clip) : 1;
    parts_.optimizer->set_lr(outcome.lr);
    optim::Update update{.grad_multiplier = clip / scale};
    if (parts_.options.clip_value > 0) update.clip_value = parts_.options.clip_value;
    parts_.optimizer->update(update);  // run_lanes() has ended on all ranks, and with it their use of shared weights
  }
  ++step_;
  seconds_training_ += watch.seconds();
  after_step(outcome, batch.global_samples);
  return outcome;
}

parallel::StepResult Trainer::run_lanes(const data::StepBatch& batch, double scale, bool stop) {
  const amp::CastCacheScope one_cast_a_weight;
  return ddp_.run(
      step_, batch, [this](const data::LaneBatch& lane) { return loss_of(lane); }, scale, stop ? 1 : 0);
}

at::Tensor Trainer::loss_of(const data::LaneBatch& lane) {
  const amp::AutocastScope autocast(parts_.amp, parts_.device.type());
  const at::Tensor output = parts_.model.forward(lane.data.contiguous(memory_format(parts_.plan.channels_last)));
  return parts_.recipe->loss(output, lane.target);
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
  if (outcome.skipped) record["skipped"] = true;
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
  if (parts_.options.on_nan == config::OnNan::kStop) {
    throw DataError(line, "; ended by --on-nan stop; lower --lr, or --clip the gradient");
  }
  if (leads()) log_.warning(line, "; lower --lr, --clip the gradient, or end such runs by --on-nan stop");
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

bool Trainer::due(int64_t every) const { return step_ >= parts_.plan.total_steps || (every > 0 && step_ % every == 0); }

// Buffers are rank 0's everywhere before they are saved. Whole on rank 0, which alone writes it.
checkpoint::Value Trainer::whole_state() {
  ddp_.sync_buffers();
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

std::string Trainer::ema_sha256() {
  parts_.optimizer->exchange_averages();
  const std::string hash = leads() ? checkpoint::weights_sha256(*parts_.model.module) : "";
  parts_.optimizer->exchange_averages();
  return hash;
}

void Trainer::finish() {
  evaluate_now();
  if (saved_step_ != step_) save();
  const std::string ema = parts_.options.ema > 0 ? ema_sha256() : "";
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
      {"weights_sha256", checkpoint::weights_sha256(*parts_.model.module)}};
  if (!ema.empty()) final["ema_sha256"] = ema;
  if (!parts_.recipe->arch().empty()) final["arch"] = parts_.recipe->arch();
  write_text(parts_.files.final_json(), final.dump(2) + '\n');
  progress_.finish();
  say(cat("done: ", step_, " steps in ", std::lround(seconds), " s; ", parts_.files.final_json(), ", weights ",
          final["weights_sha256"].get<std::string>().substr(0, 12), "…"));
}

void Trainer::say(const std::string& line) {
  if (!parts_.options.quiet) progress_.line(line);
}

}  // namespace lockstep::train
