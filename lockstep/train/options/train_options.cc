#include "lockstep/train/options/train_options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "lockstep/parallel/options/lanes.h"

namespace lockstep::train {
namespace {

using enum config::Effect;

constexpr int64_t kMostSteps = 1'000'000'000'000;
constexpr int kMostSamples = 1 << 24;

std::string same(const std::string& text) { return text; }

void require(bool holds, std::string_view line) {
  if (!holds) throw ConfigError(line);
}

}  // namespace

void TrainOptions::declare(config::OptionSet& options) {
  options.subject("recipe", &recipe, kIdentity);
  declare_run(options);
  data.declare(options);
  rate.declare(options);
  optimizer.declare(options);
  precision.declare(options);
  options.word("channels-last", "memory layout of images", &channels_last, kIdentity);
  declare_evaluation(options);
  declare_tracking(options);
  parallel.declare(options);
  comm.declare(options);
  declare_machine(options);
}

void TrainOptions::declare_run(config::OptionSet& options) {
  options.section("Run");
  options.text("out", "DIR", "folder of the run (default: runs/RECIPE-<n>)", &out, kNone).not_in_file();
  options
      .form(
          "resume", "DIR|FILE", "go on from a run or checkpoint (bare: the newest run's)", &resume,
          [](const std::string&, const std::string& given) { return given; }, same, kNone)
      .bare("")
      .not_in_file();
  options
      .flag("overwrite", "with an older --resume FILE: go on in its run's folder and drop what came later", &overwrite,
            kNone)
      .of_one_start()
      .not_in_file();
  weights.declare_start(options);
  // A preset has no effect of its own on the record: the options that it sets are recorded.
  options.text("preset", "NAME", "another's settings (none: the recipe's own, whatever the data)", &preset, kNone);
  options.number("batch-size", "N", "samples a lane", &batch_size, 1, kMostSamples, kIdentity);
  options.number("global-batch-size", "N", "samples a step, instead of --batch-size", &global_batch_size, 1,
                 kMostSamples, kNone);  // recorded as --batch-size
  options.number("epochs", "N", "passes over the data", &epochs, 1, 1'000'000, kTrajectory);
  options.number("first-epoch", "N", "number of the first one, for weights of --load that have seen earlier ones",
                 &first_epoch, 1, 1'000'000, kIdentity);
  options.number("steps", "N", "stop after this many steps", &steps, 1, kMostSteps, kNone).of_one_start();
  options.number("seed", "N", "of all random numbers", &seed, 0, std::numeric_limits<int64_t>::max(), kIdentity);
}

void TrainOptions::declare_evaluation(config::OptionSet& options) {
  options.section("Evaluation and checkpoints");
  const auto interval = [&options](const char* name, const char* help, std::optional<Interval>* field,
                                   config::Effect effect) {
    options.form(name, "N[steps|epochs|/epoch]", help, field, read_interval, write_interval, effect);
  };
  interval("eval-every", "evaluate (default: every epoch; 0: at the end)", &eval_every, kTrajectory);  // a plateau's
  options.number("early-stop", "N", "end after N evaluations without a better metric", &early_stop, 0, 1'000'000,
                 kTrajectory);
  options.form("save-every", "N[steps|epochs|/epoch|s|min|h]",
               "save a checkpoint (default: every epoch; 0: at the end)", &save_every, read_interval_or_time,
               write_interval, kNone);
  options.number("keep", "N", "numbered checkpoints that stay", &keep, 1, 1'000'000, kNone);
  options.word("save-on", "who saves them: rank 0, or the first rank of each node, for nodes with disks of their own",
               &save_on, kNone);
  options.toggle("background-saves", "write checkpoints while training goes on", &background_saves, kNone);
  options.number("snapshot-every", "STEPS",
                 "keep the state in memory, to be saved if ranks die (default: 50; 0: don't)", &snapshot_every, 0,
                 kMostSteps, kNone);
  options.number("grace", "SECONDS", "that a stopped run may take to save (0: what it takes)", &grace, 0, 1e6, kNone);
}

void TrainOptions::declare_tracking(config::OptionSet& options) {
  options.section("Tracking");
  options
      .form("track", "csv|tensorboard[,…]", "write metrics.csv, and event files for TensorBoard", &track, read_tracked,
            write_tracked, kNone)
      .of_list();
  options.number("histograms-every", "STEPS",
                 "with --track tensorboard: of weights and gradients (default: at evaluations; 0: never)",
                 &histograms_every, 0, kMostSteps, kNone);
  options.flag("ledger", "write down which samples each step trains on, for lockstep verify", &ledger, kNone);
}

void TrainOptions::declare_machine(config::OptionSet& options) {
  options.section("Machine and messages");
  options.number("max-restarts", "N", "times that failed ranks are started anew, where that may help", &max_restarts, 0,
                 1'000'000, kNone);
  device.declare(options, kTrajectory);
  options.word("normalize", "images: as they are read (host), or as bytes that the device normalises; same bits",
               &normalize, kNone);
  options.word("decode", "training JPEGs: decoded, cropped and resized by the CPU or by the device; near pixels",
               &decode, kTrajectory);
  options.toggle("deterministic", "same bits in every run", &deterministic, kTrajectory);
  options.toggle("cuda-graph", "on one GPU: forward and backward as one launch, where the recipe allows it",
                 &cuda_graph, kNone);
  options.word("on-nan", "when the loss is not finite", &on_nan, kNone);
  options.flag("detect-anomaly", "name the layer that a loss that is not finite comes from", &detect_anomaly, kNone);
  options.number("log-every", "STEPS", "print a line with the loss (0: don't)", &log_every, 0, kMostSteps, kNone);
  options.flag("quiet", "errors, warnings and the last lines only", &quiet, kNone).of_one_start();
  options
      .number("dashboard", "PORT", "serve the run's curves on a web page here (bare: at a free port)", &dashboard, 0,
              65535, kNone)
      .bare("0")
      .of_one_start();
  options.flag("detach", "go on in the background: see lockstep ps, logs and stop", &detach, kNone)
      .of_one_start()
      .not_in_file();
}

void TrainOptions::resolve(const parallel::Machine& machine, int recipe_lanes) {
  resolve_ranks(machine, recipe_lanes);
  check_start();
  check_device();
  data.check();
  check_saves();
  require(track.tensorboard || resume || histograms_every.value_or(0) == 0,
          "--histograms-every: goes with --track tensorboard, which shows them");
  if (optimizer.name || optimizer.momentum || optimizer.nesterov) optimizer.check(optimizer.name.value_or("sgd"));
  precision.check(resume.has_value());
  if (rate.lr && rate.lr_min > *rate.lr) {
    throw ConfigError("--lr-min ", rate.lr_min, ": above --lr ", *rate.lr, "; expected a number from 0 to ", *rate.lr);
  }
  if (rate.schedule) {
    rate.check(*rate.schedule);
    check_evaluations(*this, *rate.schedule);
  }
}

void TrainOptions::resolve_ranks(const parallel::Machine& machine, int recipe_lanes) {
  using parallel::ParallelOptions;
  // A GPU computes one rank's lanes one after the other. A checkpoint without its run's file knows its lanes, and a
  // single rank may have any number of them.
  const bool one_rank = device.on_gpu() || comm.backend == "single" || (resume && parallel.lanes == 0);
  if (one_rank && parallel.nproc == ParallelOptions::kUnsaid) parallel.nproc = 1;
  if (device.on_gpu() && parallel.nproc == ParallelOptions::kAuto && !machine.launched) {
    const int gpus = machine.gpus();
    if (gpus == 0) throw_no_gpu("--device " + write_device(device));
    parallel.nproc = device.gpu == DeviceChoice::kOwn ? parallel::fitting_nproc(gpus, parallel.lanes) : 1;
  }
  parallel.resolve(machine, recipe_lanes);
}

void TrainOptions::check_start() const {
  require(!(batch_size && global_batch_size), "--batch-size and --global-batch-size: give only one of them");
  const int lanes = parallel.lanes_of(parallel.nproc);
  if (global_batch_size && *global_batch_size % lanes != 0) {
    throw ConfigError("--global-batch-size ", *global_batch_size, ": expected a multiple of the ", lanes, " lanes");
  }
  require(!(resume && !weights.load.empty()),
          "--load and --resume: give only one of them; --resume brings its weights");
  require(weights.strip_prefix.empty() || !weights.load.empty(),
          "--strip-prefix: goes with --load, of whose names it is");
  // "off" stands in the config.toml of older runs, whatever they loaded.
  require(weights.average != TakesAverage::kOn || !weights.load.empty(),
          "--load-average: goes with --load, of whose weights it is");
  require(!weights.partly || !weights.load.empty(), "--load-partly: goes with --load, of whose weights it is");
  require(!weights.ignore_unknown || !weights.load.empty(),
          "--ignore-unknown: goes with --load, of whose file it speaks");
  require(!overwrite || resume || !out.empty(), "--overwrite: goes with --resume or --out, which name a run's folder");
}

void TrainOptions::check_device() const {
  require(comm.backend != "single" || parallel.nproc == 1, "--backend single: goes with --nproc 1 only; use shm");
  const bool on_gpu = device.on_gpu();
  require(comm.backend != "nccl" || on_gpu, "--backend nccl: goes with --device cuda only; use auto");
  require(!on_gpu || comm.backend == "auto" || comm.backend == "nccl" || comm.backend == "gloo",
          "--device cuda: goes with --backend nccl, or with gloo for ranks that share a GPU");
  require(decode != DecodeOn::kDevice || normalize != NormalizeOn::kHost,
          "--decode device: pictures are normalised where they are decoded; leave --normalize host out");
}

void TrainOptions::check_saves() const {
  require(background_saves || snapshot_every.value_or(0) == 0,
          "--snapshot-every: goes with --background-saves on, whose memory it uses");
}

void check_evaluations(const TrainOptions& options, const std::string& schedule) {
  const bool none = options.eval_every && options.eval_every->count == 0;
  if (options.early_stop > 0 && none) {
    throw ConfigError("--early-stop ", options.early_stop,
                      ": goes by evaluations, and --eval-every 0 makes none; leave --eval-every out");
  }
  if (schedule == "plateau" && none) {
    throw ConfigError("--schedule plateau: goes by evaluations, and --eval-every 0 makes none; leave --eval-every out");
  }
}

namespace {

struct UnitName {
  Interval::Unit unit;
  std::string_view name;
  double seconds;  // 0: no unit of time
};
constexpr std::array kUnits = {
    UnitName{Interval::Unit::kSteps, "steps", 0},     UnitName{Interval::Unit::kEpochs, "epochs", 0},
    UnitName{Interval::Unit::kPerEpoch, "/epoch", 0}, UnitName{Interval::Unit::kSeconds, "s", 1},
    UnitName{Interval::Unit::kMinutes, "min", 60},    UnitName{Interval::Unit::kHours, "h", 3600}};

Interval read_any(const std::string& name, const std::string& text, bool takes_time) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = digits == text.size() ? "steps" : text.substr(digits);
  const auto* const found = std::find_if(kUnits.begin(), kUnits.end(), [&](const UnitName& each) {
    return each.name == unit && (each.seconds == 0 || takes_time);
  });
  if (digits == 0 || found == kUnits.end()) {
    throw ConfigError("--", name, " ", text,
                      ": expected a whole number of steps or epochs, as 500, 500steps, 2epochs or 5/epoch",
                      takes_time ? ", or a time, as 90s, 10min or 2h" : "");
  }
  return {.count = config::read_whole(name, text.substr(0, digits), 0, kMostSteps), .unit = found->unit};
}

}  // namespace

Interval read_interval(const std::string& name, const std::string& text) {
  return read_any(name, text, /*takes_time=*/false);
}

Interval read_interval_or_time(const std::string& name, const std::string& text) {
  return read_any(name, text, /*takes_time=*/true);
}

std::string write_interval(const Interval& interval) {
  return cat(interval.count, kUnits.at(static_cast<size_t>(interval.unit)).name);
}

double seconds_of(const Interval& interval) {
  return static_cast<double>(interval.count) * kUnits.at(static_cast<size_t>(interval.unit)).seconds;
}

}  // namespace lockstep::train
