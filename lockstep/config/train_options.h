// What a run of training is told: plain types, each declared once (train_table) for the command line, TOML and help.
//
// std::optional: unset means the recipe's own default. Everything else has its default here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/option_spec.h"

namespace lockstep::config {

enum class OptimizerKind { kSgd, kAdagrad, kAdam, kAdamW, kNAdam, kRmsprop, kLamb, kLars, kNovoGrad };
constexpr auto words(OptimizerKind) {
  return std::to_array<std::string_view>(
      {"sgd", "adagrad", "adam", "adamw", "nadam", "rmsprop", "lamb", "lars", "novograd"});
}

// Which of them have a --momentum, and which of those Nesterov's.
constexpr bool has_nesterov(OptimizerKind kind) { return kind == OptimizerKind::kSgd || kind == OptimizerKind::kLars; }
constexpr bool has_momentum(OptimizerKind kind) { return has_nesterov(kind) || kind == OptimizerKind::kRmsprop; }

enum class ScheduleKind {
  kConstant,
  kStep,
  kMultiStep,
  kExponential,
  kCosine,
  kCosineRestarts,
  kOneCycle,
  kPolynomial,
  kPlateau,
};
constexpr auto words(ScheduleKind) {
  return std::to_array<std::string_view>({"constant", "step", "multistep", "exponential", "cosine", "cosine-restarts",
                                          "onecycle", "polynomial", "plateau"});
}

// What a schedule counts.
enum class ScheduleUnit { kSteps, kEpochs };
constexpr auto words(ScheduleUnit) { return std::to_array<std::string_view>({"steps", "epochs"}); }

// How much better is better: by a share of the best so far, or by a difference to it.
enum class ThresholdMode { kRel, kAbs };
constexpr auto words(ThresholdMode) { return std::to_array<std::string_view>({"rel", "abs"}); }

// imagenet's networks.
enum class Arch { kResnet18, kMobilenetV2 };
constexpr auto words(Arch) { return std::to_array<std::string_view>({"resnet18", "mobilenet_v2"}); }

// How the learning rate follows the global batch: by its ratio to a base, or by that ratio's root.
enum class LrRule { kLinear, kSqrt };
constexpr auto words(LrRule) { return std::to_array<std::string_view>({"linear", "sqrt"}); }

struct LrScale {
  LrRule rule = LrRule::kLinear;
  std::optional<int> base;  // samples that the unscaled rate is for; unset: the recipe's batch size
  bool operator==(const LrScale&) const = default;
};

enum class AmpLevel { kO0, kO1, kO2, kO3, kAuto };
constexpr auto words(AmpLevel) { return std::to_array<std::string_view>({"O0", "O1", "O2", "O3", "auto"}); }

enum class HalfType { kBf16, kFp16 };
constexpr auto words(HalfType) { return std::to_array<std::string_view>({"bf16", "fp16"}); }

enum class OnOff { kOff, kOn };
constexpr auto words(OnOff) { return std::to_array<std::string_view>({"off", "on"}); }

enum class ChannelsLast { kAuto, kOn, kOff };
constexpr auto words(ChannelsLast) { return std::to_array<std::string_view>({"auto", "on", "off"}); }

enum class DeviceKind { kCpu, kCuda };
constexpr auto words(DeviceKind) { return std::to_array<std::string_view>({"cpu", "cuda"}); }

// Which of them this build and this world have, comm::choose_backend knows.
enum class BackendKind { kAuto, kShm, kSingle, kGloo, kMpi, kHierarchical, kNccl };
constexpr auto words(BackendKind) {
  return std::to_array<std::string_view>({"auto", "shm", "single", "gloo", "mpi", "hierarchical", "nccl"});
}

enum class Algorithm { kFold, kRing };
constexpr auto words(Algorithm) { return std::to_array<std::string_view>({"fold", "ring"}); }

// What gradients are rounded to, at every node of the fold's tree and on the wire; each addition is fp32's.
enum class CommType { kFp32, kBf16 };
constexpr auto words(CommType) { return std::to_array<std::string_view>({"fp32", "bf16"}); }

// Whether each rank keeps the optimizer's state of its slice alone; auto: where ranks share memory.
enum class ShardOptimizer { kAuto, kOn, kOff };
constexpr auto words(ShardOptimizer) { return std::to_array<std::string_view>({"auto", "on", "off"}); }

enum class OnNan { kWarn, kStop };
constexpr auto words(OnNan) { return std::to_array<std::string_view>({"warn", "stop"}); }

// "every N steps" or "every N epochs"; 0: never.
struct Interval {
  enum class Unit { kSteps, kEpochs };
  int64_t count = 1;
  Unit unit = Unit::kEpochs;
  bool operator==(const Interval&) const = default;
};

struct TrainOptions {
  std::string recipe;        // "mnist", …
  std::string data;          // empty: made on the spot
  std::string out;           // the run's folder; empty: the front chooses runs/<recipe>-<n>
  std::string preset;        // a known set of a recipe's defaults; empty: the recipe's own
  std::string load;          // weights to start from; empty: fresh ones
  std::optional<Arch> arch;  // imagenet only, and there always set once settled
  std::optional<int> size;   // pixels a side of images
  // Set: go on from this run's folder or checkpoint; "": from the newest run, which the front replaces by its path.
  std::optional<std::string> resume;

  int nproc = 1;                         // after parsing; 0 stands for "auto" until then
  int lanes = 0;                         // 0: the world size
  std::optional<int> batch_size;         // samples a lane
  std::optional<int> global_batch_size;  // samples of all lanes; never set together with batch_size
  std::optional<int> epochs;
  std::optional<int64_t> steps;  // the total; only stops

  std::optional<double> lr;
  double lr_min = 0;
  std::optional<LrScale> scale_lr;
  std::optional<OptimizerKind> optimizer;
  std::optional<double> momentum;
  bool nesterov = false;
  std::optional<double> weight_decay;
  double clip = 0;        // largest norm of the gradient; 0: none
  double clip_value = 0;  // largest size of an element of it, after clip; 0: none
  double ema = 0;         // decay of the weights' average; 0: none is kept
  ShardOptimizer shard_optimizer = ShardOptimizer::kAuto;
  std::optional<ScheduleKind> schedule;
  ScheduleUnit schedule_unit = ScheduleUnit::kSteps;  // "units" below
  std::optional<int64_t> schedule_steps;              // the schedule's horizon, steps; unset: the epochs'
  std::optional<int64_t> warmup;                      // units
  // Of some schedules only (schedule_options.cc says which), named as PyTorch names them.
  std::optional<int64_t> step_size;      // units
  std::vector<int64_t> milestones;       // units from the run's start, ascending; empty: unset
  std::optional<double> gamma;           // the factor of a drop
  std::optional<int64_t> restart_every;  // units
  std::optional<int64_t> restart_mult;
  std::optional<double> max_lr;
  std::optional<double> pct_start;
  std::optional<double> div_factor;
  std::optional<double> final_div_factor;
  std::optional<double> power;
  std::string plateau_metric;  // empty: the loss
  std::optional<double> plateau_factor;
  std::optional<int64_t> patience;  // evaluations
  std::optional<double> threshold;
  std::optional<ThresholdMode> threshold_mode;
  std::optional<int64_t> cooldown;  // evaluations

  AmpLevel amp = AmpLevel::kO0;
  HalfType dtype = HalfType::kBf16;          // with amp
  double loss_scale = 0;                     // 0: dynamic
  std::optional<OnOff> keep_batchnorm_fp32;  // at O2 and O3; unset: the level's
  ChannelsLast channels_last = ChannelsLast::kAuto;
  bool sync_bn = false;  // BatchNorm over all lanes

  int threads = 0;                   // intra-op threads a rank; 0: default_threads()
  std::optional<int> workers;        // loader threads a rank
  std::optional<double> validation;  // percent of the training data held out
  std::optional<Interval> eval_every;
  std::optional<Interval> save_every;
  int keep = 3;  // numbered checkpoints that stay

  int64_t seed = 1;  // not negative
  bool deterministic = true;
  DeviceKind device = DeviceKind::kCpu;
  BackendKind backend = BackendKind::kAuto;
  Algorithm algorithm = Algorithm::kFold;
  CommType comm_dtype = CommType::kFp32;
  std::string interfaces;  // network interfaces, "eth0,eth1"; empty: the one that reaches the rendezvous
  int timeout = 600;       // seconds that a rank waits for the others
  OnNan on_nan = OnNan::kWarn;
  bool detect_anomaly = false;  // look at every operator's results
  bool quiet = false;
  bool pin = false;
};

// The recipes that can be trained by name.
constexpr auto kRecipes = std::to_array<std::string_view>({"mnist", "unet", "imagenet"});

// --amp [LEVEL], of every command that has it.
template <typename Options>
OptionSpec<Options> amp_option() {
  constexpr const char* kLetterO[] = {"did you mean O0, with the letter O?", "did you mean O1, with the letter O?",
                                      "did you mean O2, with the letter O?", "did you mean O3, with the letter O?"};
  return bare_is("auto", word("amp", "mixed precision (bare: auto)", &Options::amp,
                              {{"00", kLetterO[0]},
                               {"01", kLetterO[1]},
                               {"02", kLetterO[2]},
                               {"03", kLetterO[3]},
                               {"o0", kLetterO[0]},
                               {"o1", kLetterO[1]},
                               {"o2", kLetterO[2]},
                               {"o3", kLetterO[3]}}));
}

// --arch and --size, of every command that names a recipe.
template <typename Options>
OptionTable<Options> network_options() {
  return {word("arch", "imagenet: the network (default: resnet18)", &Options::arch),
          number("size", "PX", "imagenet, unet: pixels a side (default: the recipe's)", &Options::size, 16, 4096)};
}

// Throws ConfigError where the recipe has no --arch or --size to choose.
void check_network(const std::string& recipe, const std::optional<Arch>& arch, const std::optional<int>& size);

// Throws ConfigError that lists the recipes, and the nearest, unless `name` is one.
void check_recipe(const std::string& name);

OptionTable<TrainOptions> train_table();

// What single options can't know: which go together, and what the recipe has. Throws ConfigError. Replaces nproc "auto"
// by a number, for a machine of `cores`.
void settle(TrainOptions& options, int cores);

// The lanes of a world of `world_size` ranks.
inline int lanes_of(const TrainOptions& options, int world_size) {
  return options.lanes == 0 ? world_size : options.lanes;
}

// "200", "200steps", "2epochs"; a bare number counts steps. Throws ConfigError.
Interval read_interval(std::string_view name, const std::string& text);
std::string write_interval(const Interval& interval);

// "linear", "sqrt=256". Throws ConfigError.
LrScale read_lr_scale(std::string_view name, const std::string& text);
std::string write_lr_scale(const LrScale& scale);

}  // namespace lockstep::config
