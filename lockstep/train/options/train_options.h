// The options of one training run: those of its components, and those of the run itself. An unset std::optional means
// the recipe's own default.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/amp/options/precision_options.h"
#include "lockstep/base/gpus.h"
#include "lockstep/config/option_set.h"
#include "lockstep/data/options/data_options.h"
#include "lockstep/optim/options/optimizer_options.h"
#include "lockstep/parallel/options/parallel_options.h"
#include "lockstep/schedule/options/lr_options.h"
#include "lockstep/train/options/device_option.h"
#include "lockstep/train/options/tracked.h"
#include "lockstep/train/options/weights_options.h"
#include "lockstep/world/options/backend_options.h"

namespace lockstep::train {

enum class ChannelsLast { kAuto, kOn, kOff };
constexpr auto words(ChannelsLast) {
  return std::to_array<config::Word<ChannelsLast>>(
      {{ChannelsLast::kAuto, "auto"}, {ChannelsLast::kOn, "on"}, {ChannelsLast::kOff, "off"}});
}

// Where the bytes of images become the numbers of the normalising table.
enum class NormalizeOn { kAuto, kHost, kDevice };
constexpr auto words(NormalizeOn) {
  return std::to_array<config::Word<NormalizeOn>>(
      {{NormalizeOn::kAuto, "auto"}, {NormalizeOn::kHost, "host"}, {NormalizeOn::kDevice, "device"}});
}

// Where JPEGs are decoded, cropped and resized.
enum class DecodeOn { kHost, kDevice };
constexpr auto words(DecodeOn) {
  return std::to_array<config::Word<DecodeOn>>({{DecodeOn::kHost, "host"}, {DecodeOn::kDevice, "device"}});
}

enum class OnNan { kWarn, kStop };
constexpr auto words(OnNan) {
  return std::to_array<config::Word<OnNan>>({{OnNan::kWarn, "warn"}, {OnNan::kStop, "stop"}});
}

// Whose disks hold the checkpoints: rank 0's, or one of every node.
enum class SaveOn { kRank0, kNode };
constexpr auto words(SaveOn) {
  return std::to_array<config::Word<SaveOn>>({{SaveOn::kRank0, "rank0"}, {SaveOn::kNode, "node"}});
}

// "every N steps", "every N epochs", N times an epoch, or every so much time where that is taken; 0: never.
struct Interval {
  enum class Unit { kSteps, kEpochs, kPerEpoch, kSeconds, kMinutes, kHours };
  int64_t count = 1;
  Unit unit = Unit::kEpochs;
  bool operator==(const Interval&) const = default;
};

struct TrainOptions {
  std::string recipe;  // its name
  data::DataOptions data;

  std::string out;         // the run's folder; empty: the launcher chooses runs/<recipe>-<n>
  WeightsOptions weights;  // to start from
  std::string preset;      // a known set of a recipe's defaults; empty: the recipe's own
  // If set, the run resumes from this run's folder or checkpoint. "" means the newest run; the launcher replaces it by
  // that run's path.
  std::optional<std::string> resume;
  // Lets the run drop what its folder holds beyond the point where it begins: later checkpoints and metrics.
  bool overwrite = false;

  // The three below are no options: TrainCommand sets them from the file of the run that goes on.
  std::string parent;            // the checkpoint from which that run was forked; empty: from none
  WeightsOptions loaded;         // that it started from
  bool epochs_recalled = false;  // epochs are that run's, and --steps may ask for more

  std::optional<int> batch_size;         // samples a lane
  std::optional<int> global_batch_size;  // samples of all lanes; never set together with batch_size
  std::optional<int> epochs;
  int first_epoch = 1;           // the number of the first one, which its order of samples goes by
  std::optional<int64_t> steps;  // in total; only decides where the run stops

  schedule::LrOptions rate;
  optim::OptimizerOptions optimizer;
  amp::PrecisionOptions precision;
  ChannelsLast channels_last = ChannelsLast::kAuto;

  std::optional<Interval> eval_every;
  std::optional<Interval> save_every;
  int64_t early_stop = 0;  // evaluations in a row without a better metric that end the run; 0: none do
  int keep = 3;            // numbered checkpoints that stay
  SaveOn save_on = SaveOn::kRank0;
  bool background_saves = true;
  std::optional<int64_t> snapshot_every;  // steps; 0: none; unset: 50 where the launcher keeps them, else none
  int max_restarts = 3;                   // of a run whose ranks have failed
  double grace = 0;                       // seconds from a request to stop to the ranks' end; 0: as long as they take

  Tracked track;
  std::optional<int64_t> histograms_every;  // steps, 0: never; unset: at evaluations

  parallel::ParallelOptions parallel;
  BackendOptions comm;

  int64_t seed = 1;  // not negative
  bool deterministic = true;
  bool cuda_graph = true;  // steps on a GPU are recorded where they can be
  DeviceChoice device;
  NormalizeOn normalize = NormalizeOn::kAuto;
  DecodeOn decode = DecodeOn::kHost;
  OnNan on_nan = OnNan::kWarn;
  bool ledger = false;          // which samples each step trains on is written down
  bool detect_anomaly = false;  // check every operator's results
  int64_t log_every = 0;        // steps between two lines of progress; 0: there are none
  bool quiet = false;
  bool detach = false;           // the launcher goes on in the background
  std::optional<int> dashboard;  // the port of the web page that shows the run; 0: a free one

  // Whether ranks may compute on one GPU: NCCL takes one a rank of a host (nccl_host()), Gloo any.
  bool may_share_gpus() const { return comm.backend == "gloo" || !nccl_host().empty(); }

  void declare(config::OptionSet& options);
  // Throws ConfigError for options that do not go together. Replaces what nproc leaves open by a number.
  void resolve(const parallel::Machine& machine, int recipe_lanes);

 private:
  void declare_run(config::OptionSet& options);
  void declare_evaluation(config::OptionSet& options);
  void declare_tracking(config::OptionSet& options);
  void declare_machine(config::OptionSet& options);
  void resolve_ranks(const parallel::Machine& machine, int recipe_lanes);
  void check_start() const;
  void check_device() const;
  void check_saves() const;
};

// Throws ConfigError if the schedule or --early-stop depends on evaluations and the run has none.
void check_evaluations(const TrainOptions& options, const std::string& schedule);

// Reads "200", "200steps", "2epochs" or "5/epoch"; a bare number counts steps. Throws ConfigError for anything else.
Interval read_interval(const std::string& name, const std::string& text);
// The same, and reads "90s", "10min" and "2h".
Interval read_interval_or_time(const std::string& name, const std::string& text);
std::string write_interval(const Interval& interval);
// The seconds of an interval of time; 0 for one of steps or epochs.
double seconds_of(const Interval& interval);

}  // namespace lockstep::train
