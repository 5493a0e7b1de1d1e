// Reports a run's progress: to the node's board on every rank, and on rank 0 to metrics.jsonl, the progress display and
// lines for people.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lockstep/base/clock.h"
#include "lockstep/image/device/batch_decoder.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/track/jsonl.h"
#include "lockstep/track/pace.h"
#include "lockstep/track/progress.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/folder/folder_watch.h"
#include "lockstep/train/input_wait.h"
#include "lockstep/train/parts.h"

namespace lockstep::train {

// The report of one training step.
struct StepReport {
  double loss = 0;
  double lr = 0;
  double gradient_norm = 0;
  std::string overflow = {};  // in a step that the loss scaler skips: the first parameter whose gradient is not finite
  int64_t samples = 0;        // of the global batch
  double seconds = 0;
  double data_seconds = 0;  // of these: of taking batches
  InputTimes input = {};    // of this rank alone
};

class Reporter {
 public:
  using Print = std::function<void(const std::string& text)>;

  // `parts` outlives this; its state's step counts the steps done. `print` receives the texts for people. `more`, which
  // may be null and outlives this, receives each record once it is in metrics.jsonl.
  Reporter(const Parts& parts, track::Progress::Options progress, Print print, track::MetricSink* more = nullptr);

  // Tells the board that the next step begins.
  void begin_step();
  void step(const StepReport& report);
  // Reports the buckets' reductions of the last step, in some steps only.
  void reductions(const parallel::DistributedDataParallel& ddp);
  // Tells of the samples that --skip-bad has passed over since the last call, and writes the run's list of them.
  void skipped();
  // `is_best`: no evaluation of the run was better.
  void evaluation(const Evaluation& evaluation, bool of_test_data, bool is_best);
  void saved(const std::string& checkpoint);
  void stopped();
  // Says, and puts into final.json, where the pictures that this start has trained on were decoded. Before done().
  void decoded(const image::DecodedCounts& all);
  // Writes final.json: the last evaluation, the hashes of the weights and, unless empty, of their average. Tells what
  // comes next, and whether training waited for data.
  void done(const Evaluation& evaluation, const std::string& weights_sha256, const std::string& ema_sha256);

  // Throws IoError if the run's folder was removed or replaced. To be called before a write to it.
  void check_folder() const;

  // Prints a line for people, unless --quiet.
  void say(const std::string& line);
  // Prints one of the last lines, with --quiet too.
  void say_last(const std::string& line);

 private:
  bool leads() const { return parts_.world->rank() == 0; }
  int64_t epoch() const { return parts_.plan.epoch_of(parts_.state.step - 1) + 1; }  // of the last step, from 1
  std::string command(const char* name) const;                                       // "lockstep train mnist"
  double samples_per_second() const { return seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0; }
  void write(const track::Record& record);
  void show_progress(const StepReport& report);
  std::string input_line() const;
  std::string decoded_line() const;
  void list_skipped();
  config::Record own_options() const;  // the recipe's
  double last_loss() const;
  nlohmann::ordered_json results(const Evaluation& evaluation, const std::string& weights_sha256,
                                 const std::string& ema_sha256) const;

  const Parts& parts_;
  const int64_t first_step_;
  std::optional<FolderWatch> folder_;  // of ranks that save
  std::optional<track::JsonlSink> metrics_;
  track::MetricSink* more_;
  track::Progress progress_;
  int64_t samples_ = 0;  // trained in this start
  double seconds_ = 0;   // spent on them
  track::Pace pace_;
  InputWait input_wait_;
  std::optional<image::DecodedCounts> decoded_;
  std::optional<double> loss_;  // of the last step; nothing: this start has done none
  size_t skipped_told_ = 0;     // of parts_.skipped
  Stopwatch since_start_;
};

}  // namespace lockstep::train
