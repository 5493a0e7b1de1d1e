#include "lockstep/train/reporter.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/lease.h"
#include "lockstep/config/option_set.h"
#include "lockstep/train/best_metric.h"
#include "lockstep/train/folder/text_file.h"

namespace lockstep::train {
namespace {

// Steps whose reductions are written to metrics.jsonl.
constexpr int64_t kFirstReductions = 10, kReductionsEvery = 100;

// Seconds since 1970, to a thousandth.
double wall_time() {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch());
  return static_cast<double>(now.count()) / 1e3;
}

double to_microseconds(double seconds) { return std::round(seconds * 1e6) / 1e6; }

bool is_known(const data::ReadStats& read) { return read.read_ns + read.decode_ns + read.transform_ns > 0; }

nlohmann::ordered_json to_json(const InputTimes& times) {
  const auto seconds = [](int64_t ns) { return to_microseconds(static_cast<double>(ns) * 1e-9); };
  return {{"wait", to_microseconds(times.wait)},
          {"read", seconds(times.read.read_ns)},
          {"decode", seconds(times.read.decode_ns)},
          {"transform", seconds(times.read.transform_ns)}};
}

nlohmann::ordered_json to_json(const image::DecodedCounts& counts) {
  auto on_host = nlohmann::ordered_json::object();
  for (const auto& [why, count] : counts.on_host) on_host[why] = count;
  return {{"on_device", counts.on_device}, {"on_host", on_host}};
}

}  // namespace

Reporter::Reporter(const Parts& parts, track::Progress::Options progress, Print print, track::MetricSink* more)
    : parts_(parts), first_step_(parts.state.step), more_(more), progress_(progress, std::move(print)) {
  if (parts_.saves()) folder_.emplace(parts_.files.folder);
  if (!leads()) return;
  if (parts_.skipped) skipped_told_ = parts_.skipped->all().size();  // before a resume
  if (!parts_.resumed_from.empty()) saved(parts_.resumed_from);
  metrics_.emplace(parts_.files.metrics());
}

config::Record Reporter::own_options() const {
  config::OptionSet own;
  parts_.recipe->declare(own);
  config::Record all;
  for (const config::Option& row : own.rows()) {
    if (row.effect != config::Effect::kNone) all.push_back({row.name, row.get().value_or("")});
  }
  return all;
}

// A run that was stopped after its last step has no step in the start that ends it.
double Reporter::last_loss() const {
  if (loss_) return *loss_;
  double loss = 0;
  track::for_each_record(parts_.files.metrics(), [&](const track::Record& record) {
    if (record.value("kind", "") == "train" && record.contains("loss") && record["loss"].is_number())
      loss = record["loss"];
  });
  return loss;
}

void Reporter::begin_step() {
  parts_.world->self().step.store(static_cast<uint64_t>(parts_.state.step + 1), std::memory_order_relaxed);
}

void Reporter::step(const StepReport& report) {
  auto& board = parts_.world->board();
  parts_.world->self().beat();
  uint64_t none = 0;
  board.first_step_ns.compare_exchange_strong(none, static_cast<uint64_t>(monotonic_ns()));
  samples_ += report.samples;
  seconds_ += report.seconds;
  pace_.step(report.samples, report.seconds);
  input_wait_.step(report.seconds, report.input);
  loss_ = report.loss;
  if (!leads()) return;
  track::Record record = {
      {"kind", "train"},
      {"step", parts_.state.step},
      {"epoch", epoch()},
      {"loss", report.loss},
      {"lr", report.lr},
      {"gradient_norm", report.gradient_norm},
      {"time", wall_time()},
      {"seconds", to_microseconds(report.seconds)},
      {"samples_per_second", report.seconds > 0 ? std::round(static_cast<double>(report.samples) / report.seconds) : 0},
      {"data_seconds", to_microseconds(report.data_seconds)}};
  if (is_known(report.input.read)) record["data"] = to_json(report.input);
  if (parts_.mixed->scaler().enabled()) record["loss_scale"] = parts_.mixed->loss_scale();
  if (!report.overflow.empty()) {
    record["skipped"] = true;
    record["overflow"] = report.overflow;
  }
  write(record);
  const int64_t every = parts_.options.log_every;
  if (every > 0 && parts_.state.step % every == 0) {
    say(cat("epoch ", epoch(), ", step ", parts_.state.step, ": training loss ", report.loss, ", lr ", report.lr));
  }
  show_progress(report);
}

void Reporter::show_progress(const StepReport& report) {
  // The last step of an epoch may have fewer samples.
  const int64_t steps_left = parts_.plan.total_steps - parts_.state.step;
  const int64_t samples_a_step = std::min(parts_.plan.global_batch(), parts_.data.train->size());
  progress_.update({.step = parts_.state.step,
                    .steps = parts_.plan.total_steps,
                    .epoch = epoch(),
                    .epochs = parts_.plan.first_epoch + parts_.plan.epochs,
                    .loss = report.loss,
                    .lr = report.lr,
                    .samples_per_second = pace_.samples_per_second(),
                    .seconds_left = pace_.seconds_for(steps_left * samples_a_step)});
}

void Reporter::skipped() {
  if (!leads() || !parts_.skipped || parts_.skipped->all().size() == skipped_told_) return;
  size_t number = 0;
  for (const data::BadSample& each : parts_.skipped->all()) {
    if (++number > skipped_told_) say_last(cat("skipped ", number, " of ", parts_.skipped->most(), ": ", each.why));
  }
  skipped_told_ = number;
  check_folder();
  write_text(parts_.files.skipped(), data::lines_of(parts_.skipped->all()));
}

// At the run's end.
void Reporter::list_skipped() {
  if (!parts_.skipped || parts_.skipped->all().empty()) return;
  const size_t count = parts_.skipped->all().size();
  say_last(cat("skipped: ", count, count == 1 ? " sample" : " samples", " that can't be read (", parts_.files.skipped(),
               "):"));
  for (const data::BadSample& each : parts_.skipped->all()) say_last("  " + each.why);
}

// DistributedDataParallel's logging data of this rank, bucket by bucket.
void Reporter::reductions(const parallel::DistributedDataParallel& ddp) {
  const int64_t step = parts_.state.step;
  if (!leads() || (step != kFirstReductions && step % kReductionsEvery != 0)) return;
  const auto ms = [](double seconds) { return seconds * 1e3; };
  const parallel::CommLog log = ddp.comm_log();
  auto buckets = nlohmann::ordered_json::array();
  for (size_t i = 0; i < ddp.reducer().buckets(); ++i) {
    const parallel::BucketLog bucket = ddp.reducer().log(i);
    buckets.push_back({{"label", bucket.label},
                       {"bytes", bucket.bytes},
                       {"in_flight_ms", ms(bucket.in_flight)},
                       {"waited_ms", ms(bucket.waited)}});
  }
  write({{"kind", "comm"},
         {"step", step},
         {"bytes", log.bytes},
         {"in_flight_ms", ms(log.in_flight)},
         {"waited_ms", ms(log.waited)},
         {"overlap", log.overlap()},
         {"buckets", buckets}});
}

void Reporter::check_folder() const {
  if (folder_) folder_->check();
}

void Reporter::write(const track::Record& record) {
  check_folder();
  check_lease(parts_.files.metrics());
  metrics_->write(record);
  if (more_ != nullptr) more_->write(record);
}

void Reporter::evaluation(const Evaluation& evaluation, bool of_test_data, bool is_best) {
  if (!leads()) return;
  const int64_t step = parts_.state.step;
  const std::string split = of_test_data ? "test" : "validation";
  track::Record record = {{"kind", "eval"},     {"split", split},          {"step", step},
                          {"epoch", epoch()},   {"loss", evaluation.loss}, {"samples", evaluation.samples},
                          {"time", wall_time()}};
  if (evaluation.left_out > 0) record["left_out"] = evaluation.left_out;
  for (const auto& [name, value] : evaluation.metrics.items()) record[name] = value;
  const bool is_there = step == first_step_ && std::count(parts_.evaluated.begin(), parts_.evaluated.end(), split) > 0;
  if (!is_there) write(record);
  say(cat("epoch ", epoch(), ", step ", step, ": ", text_of(evaluation, split), is_best ? ", the best so far" : ""));
}

void Reporter::saved(const std::string& checkpoint) { parts_.world->board().saved.set(cat("checkpoint ", checkpoint)); }

void Reporter::stopped() {
  progress_.finish();
  say_last(cat("stopped at step ", parts_.state.step, ", saved ", parts_.files.interrupted(),
               "; go on with: ", parts_.resume_command));
}

nlohmann::ordered_json Reporter::results(const Evaluation& evaluation, const std::string& weights_sha256,
                                         const std::string& ema_sha256) const {
  const int64_t step = parts_.state.step;
  return {{"recipe", parts_.recipe->name()},
          {"steps", step},
          {"epochs", static_cast<double>(step) / static_cast<double>(parts_.plan.steps_per_epoch)},
          {"loss", evaluation.loss},
          {"train_loss", last_loss()},
          {"metrics", evaluation.metrics},
          {"images_per_second", samples_per_second()},
          {"world_size", parts_.world->size()},
          {"lanes", parts_.plan.lanes},
          {"seconds", since_start_.seconds()},
          {"skipped", parts_.skipped ? parts_.skipped->all().size() : 0},
          {"decoded", to_json(decoded_.value_or(image::DecodedCounts()))},
          {"weights_sha256", weights_sha256},
          {"ema_sha256", ema_sha256}};
}

void Reporter::done(const Evaluation& evaluation, const std::string& weights_sha256, const std::string& ema_sha256) {
  auto final = results(evaluation, weights_sha256, ema_sha256);
  if (ema_sha256.empty()) final.erase("ema_sha256");
  if (!parts_.skipped) final.erase("skipped");
  if (!decoded_) final.erase("decoded");
  const auto is_result = [results = final](const std::string& name) { return results.contains(name); };
  for (const auto& [name, value] : own_options()) final[is_result(name) ? name + "_option" : name] = value;
  check_folder();
  write_text(parts_.files.final_json(), final.dump(2) + '\n');
  progress_.finish();
  say_last(cat("done: ", parts_.state.step, " steps in ", std::lround(final["seconds"].get<double>()), " s; ",
               parts_.files.final_json(), ", weights ", weights_sha256.substr(0, 12), "…"));
  std::error_code unknown;
  const bool has_best = std::filesystem::exists(parts_.files.best(), unknown);
  if (has_best) {
    const BestMetric metric(*parts_.recipe);
    const bool is_known = parts_.state.best != metric.worst();
    say_last(cat("best: ", parts_.files.best(),
                 is_known ? cat(", ", metric.lower_is_better ? "lowest " : "highest ", metric.name, ' ',
                                text_of(nlohmann::ordered_json(parts_.state.best)))
                          : ""));
  }
  if (decoded_) say_last(decoded_line());
  list_skipped();
  const std::string& data = parts_.options.data.path;
  say_last(cat("next: ", command("eval"), " --load ", has_best ? parts_.files.best() : parts_.files.last(),
               data.empty() ? "" : cat(" --data ", data)));
  if (const std::string line = input_line(); !line.empty()) say_last(line);
}

void Reporter::decoded(const image::DecodedCounts& all) { decoded_ = all; }

std::string Reporter::decoded_line() const {
  const image::JpegDecoder& decoder = *parts_.decoder;
  const int64_t bytes = decoder.device_bytes();
  constexpr int64_t kMiB = int64_t{1} << 20;
  return cat("decoded: ", decoded_->text(),
             bytes == 0 ? "" : cat("; ", decoder.text(), " keeps ", (bytes + kMiB - 1) / kMiB, " MiB there"));
}

std::string Reporter::input_line() const {
  const int cores = std::max(1, usable_cores() / std::max(1, parts_.world->place().local_size));
  // A step that waits reads as well (sample_queue.h). On a CPU it thereby has a core of its own.
  return input_wait_.line(parts_.workers, parts_.device.is_cpu() ? cores - 1 : cores);
}

std::string Reporter::command(const char* name) const {
  return cat(parts_.program, ' ', name, ' ', parts_.recipe->name());
}

void Reporter::say(const std::string& line) {
  if (!parts_.options.quiet) say_last(line);
}

void Reporter::say_last(const std::string& line) {
  if (leads()) progress_.line(line);
}

}  // namespace lockstep::train
