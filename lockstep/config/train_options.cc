#include "lockstep/config/train_options.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "lockstep/base/board.h"
#include "lockstep/config/schedule_options.h"
#include "lockstep/config/world.h"

namespace lockstep::config {
namespace {

constexpr int64_t kMostSteps = 1'000'000'000'000;
constexpr int kMostSamples = 1 << 24;

using Table = OptionTable<TrainOptions>;
using Spec = OptionSpec<TrainOptions>;

Spec resume_option() {
  Spec spec = text<TrainOptions>("resume", "DIR|FILE", "go on from a run or checkpoint (bare: the newest run's)",
                                 &TrainOptions::out);
  spec.form = OptionForm::kOptionalValue;
  spec.set = [](TrainOptions& options, const std::string& given) { options.resume = given; };
  spec.get = [](const TrainOptions& options) { return options.resume; };
  return spec;
}

Spec nproc_option() {
  Spec spec = number("nproc", "N|auto", "processes (auto: one a core)", &TrainOptions::nproc, 1, kMaxLocalRanks);
  const auto set_number = spec.set;
  spec.set = [set_number](TrainOptions& options, const std::string& given) {
    if (given == "auto") {
      options.nproc = 0;
    } else if (given.find(':') != std::string::npos) {
      throw ConfigError("--nproc ", given, ": a range is not available yet; use a number or auto");
    } else {
      set_number(options, given);
    }
  };
  return spec;
}

Spec loss_scale_option() {
  Spec spec = number("loss-scale", "X|dynamic", "loss scale for fp16", &TrainOptions::loss_scale, 1e-6, 1e12);
  const auto set_number = spec.set;
  spec.set = [set_number](TrainOptions& options, const std::string& given) {
    if (given == "dynamic") {
      options.loss_scale = 0;
    } else {
      set_number(options, given);
    }
  };
  const auto get_number = spec.get;
  spec.get = [get_number](const TrainOptions& options) {
    return options.loss_scale == 0 ? std::optional<std::string>("dynamic") : get_number(options);
  };
  return spec;
}

Spec keep_batchnorm_option() {
  return bare_is("on", word("keep-batchnorm-fp32", "--amp O2, O3: BatchNorm in fp32 (default: at O2; bare: on)",
                            &TrainOptions::keep_batchnorm_fp32));
}

Spec interval_option(const std::string& name, const std::string& help, std::optional<Interval> TrainOptions::*field) {
  Spec spec{{.name = name, .value = "N[steps|epochs]", .help = help, .is_text = true}, {}, {}};
  spec.set = [name, field](TrainOptions& options, const std::string& given) {
    options.*field = read_interval(name, given);
  };
  spec.get = internal::getter(field, write_interval);
  return spec;
}

Spec scale_lr_option() {
  Spec spec{{.name = "scale-lr",
             .value = "linear|sqrt[=BASE]",
             .help = "scale the rate by global batch / BASE (default: the recipe's batch size)",
             .is_text = true},
            {},
            {}};
  spec.set = [](TrainOptions& options, const std::string& given) {
    options.scale_lr = read_lr_scale("scale-lr", given);
  };
  spec.get = internal::getter(&TrainOptions::scale_lr, write_lr_scale);
  return spec;
}

Table optimization_rows() {
  using O = TrainOptions;
  Table table = {
      number("lr", "X", "learning rate", &O::lr, 0, 1000),
      number("lr-min", "X", "least rate, where the cosine schedules end", &O::lr_min, 0, 1000),
      scale_lr_option(),
      word("optimizer", "", &O::optimizer),
      number("momentum", "X", "of sgd, lars, rmsprop", &O::momentum, 0, 0.999999),
      flag("nesterov", "Nesterov's momentum", &O::nesterov),
      number("weight-decay", "X", "L2 penalty (adamw: decoupled)", &O::weight_decay, 0, 1000),
      number("clip", "X", "largest norm of the gradient (0: any)", &O::clip, 0, 1e12),
      number("clip-value", "X", "largest element of the gradient (0: any)", &O::clip_value, 0, 1e12),
      number("ema", "DECAY", "keep and evaluate an average of the weights (0: none)", &O::ema, 0, 0.99999999),
      word("shard-optimizer", "each process keeps and updates a slice", &O::shard_optimizer)};
  for (Spec& row : schedule_rows()) table.push_back(std::move(row));
  return table;
}

Table machine_rows() {
  using O = TrainOptions;
  return {number("threads", "N", "compute threads a process (default: cores / lanes)", &O::threads, 0, 1024),
          number("workers", "N", "threads a process that load data", &O::workers, 0, 256),
          toggle("deterministic", "same bits in every run", &O::deterministic),
          word("device", "where to compute", &O::device),
          word("backend", "how processes talk", &O::backend),
          word("algorithm", "ring: bits differ between world sizes", &O::algorithm),
          word("comm-dtype", "what gradients are added and sent in", &O::comm_dtype),
          text("interface", "NAME[,NAME]", "network interfaces between nodes", &O::interfaces),
          number("timeout", "SECONDS", "that a process waits for the others", &O::timeout, 1, 86400),
          flag("pin", "pin processes to cores", &O::pin)};
}

void require(bool holds, std::string_view line) {
  if (!holds) throw ConfigError(line);
}

void check_preset(const TrainOptions& options) {
  if (options.preset.empty()) return;
  const std::vector<std::string> presets =
      options.recipe == "mnist" ? std::vector<std::string>{"paddle"} : std::vector<std::string>{};
  if (std::find(presets.begin(), presets.end(), options.preset) != presets.end()) return;
  throw ConfigError("--preset ", options.preset, ": ", options.recipe, " has ",
                    presets.empty() ? "no presets" : cat("only ", either(presets)),
                    did_you_mean(options.preset, presets));
}

}  // namespace

void check_recipe(const std::string& name) {
  const std::vector<std::string> recipes(kRecipes.begin(), kRecipes.end());
  if (std::find(recipes.begin(), recipes.end(), name) != recipes.end()) return;
  if (name.empty()) throw ConfigError("which recipe? one of ", either(recipes), " must be named");
  throw ConfigError(name, ": unknown recipe; expected ", either(recipes), did_you_mean(name, recipes));
}

void check_network(const std::string& recipe, const std::optional<Arch>& arch, const std::optional<int>& size) {
  if (arch && recipe != "imagenet") {
    throw ConfigError("--arch ", to_string(*arch), ": ", recipe, " has one network; --arch goes with imagenet only");
  }
  // Below, convolutions see nothing but padding, and oneDNN's gradients of such weights are not the same in every
  // process.
  if (size && *size < 32 && recipe == "imagenet") {
    throw ConfigError("--size ", *size, ": imagenet's networks halve images five times; expected 32 or more");
  }
  if (size && recipe == "mnist") throw ConfigError("--size ", *size, ": mnist's images are 28×28; leave --size out");
}

OptionTable<TrainOptions> train_table() {
  using O = TrainOptions;
  Table table;
  const Table network = network_options<O>();
  add_section(table, "Data and files",
              {text("data", "DIR", "folder of the data set (left out: data made on the spot)", &O::data),
               text("out", "DIR", "folder of the run (default: runs/RECIPE-<n>)", &O::out),
               text("load", "FILE", "weights to start from", &O::load), resume_option(),
               text("preset", "NAME", "another's settings (mnist: paddle)", &O::preset), network[0], network[1],
               number("validation", "PCT", "percent of the training data held out", &O::validation, 0, 90)});
  add_section(
      table, "Size and length",
      {nproc_option(),
       number("lanes", "S", "slices of the global batch (default: the number of processes)", &O::lanes, 0, 65536),
       number("batch-size", "N", "samples a lane", &O::batch_size, 1, kMostSamples),
       number("global-batch-size", "N", "samples a step, instead of --batch-size", &O::global_batch_size, 1,
              kMostSamples),
       number("epochs", "N", "passes over the data", &O::epochs, 1, 1'000'000),
       number("steps", "N", "stop after this many steps", &O::steps, 1, kMostSteps)});
  add_section(table, "Optimization", optimization_rows());
  add_section(table, "Precision",
              {amp_option<O>(), word("dtype", "the half type of --amp", &O::dtype), loss_scale_option(),
               keep_batchnorm_option(), word("channels-last", "memory layout of images", &O::channels_last),
               flag("sync-bn", "BatchNorm's statistics over all lanes of a step", &O::sync_bn)});
  add_section(table, "Evaluation and checkpoints",
              {interval_option("eval-every", "evaluate (default: every epoch)", &O::eval_every),
               interval_option("save-every", "save a checkpoint (default: every epoch)", &O::save_every),
               number("keep", "N", "numbered checkpoints that stay", &O::keep, 1, 1'000'000)});
  add_section(table, "Machine", machine_rows());
  add_section(table, "Other",
              {number("seed", "N", "of all random numbers", &O::seed, 0, std::numeric_limits<int64_t>::max()),
               word("on-nan", "when the loss is not finite", &O::on_nan),
               flag("detect-anomaly", "name the layer that a loss that is not finite comes from", &O::detect_anomaly),
               flag("quiet", "no progress bar", &O::quiet)});
  return table;
}

void settle(TrainOptions& o, int cores) {
  check_recipe(o.recipe);
  check_preset(o);
  check_network(o.recipe, o.arch, o.size);
  if (o.recipe == "imagenet") o.arch = o.arch.value_or(Arch::kResnet18);  // so that the run's record says which
  if (o.nproc == 0) o.nproc = fitting_nproc(cores, o.lanes);
  check_lanes(o.nproc, o.lanes);
  require(!(o.batch_size && o.global_batch_size), "--batch-size and --global-batch-size: give only one of them");
  const int lanes = lanes_of(o, o.nproc);
  if (o.global_batch_size && *o.global_batch_size % lanes != 0) {
    throw ConfigError("--global-batch-size ", *o.global_batch_size, ": expected a multiple of the ", lanes, " lanes");
  }
  require(!(o.resume && !o.load.empty()), "--load and --resume: give only one of them; --resume brings its weights");
  const auto kind = o.optimizer.value_or(OptimizerKind::kSgd);
  require(!o.momentum || has_momentum(kind),
          "--momentum goes with --optimizer sgd, lars or rmsprop only; leave one of them out");
  require(!o.nesterov || has_nesterov(kind),
          "--nesterov goes with --optimizer sgd or lars only; leave one of them out");
  require(!(o.nesterov && o.momentum == 0.0), "--nesterov needs a --momentum above 0");
  require(o.loss_scale == 0 || o.amp != AmpLevel::kO0, "--loss-scale goes with --amp; give a level, or leave it out");
  const bool may_cast = o.amp == AmpLevel::kO2 || o.amp == AmpLevel::kO3 || (o.amp == AmpLevel::kAuto && o.resume);
  require(!o.keep_batchnorm_fp32 || may_cast,
          "--keep-batchnorm-fp32 goes with --amp O2 and O3, which cast the model; leave it out");
  require(o.backend != BackendKind::kSingle || o.nproc == 1, "--backend single: goes with --nproc 1 only; use shm");
  const bool on_gpu = o.device == DeviceKind::kCuda;
  require(o.backend != BackendKind::kNccl || on_gpu, "--backend nccl: goes with --device cuda only; use auto");
  require(
      !on_gpu || o.backend == BackendKind::kAuto || o.backend == BackendKind::kNccl || o.backend == BackendKind::kGloo,
      "--device cuda: goes with --backend nccl, or with gloo for ranks that share a GPU");
  if (o.lr && o.lr_min > *o.lr) {
    throw ConfigError("--lr-min ", o.lr_min, ": above --lr ", *o.lr, "; expected a number from 0 to ", *o.lr);
  }
  if (o.schedule) check_schedule(o, *o.schedule);
}

Interval read_interval(std::string_view name, const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(digits);
  if (digits == 0 || !(unit.empty() || unit == "steps" || unit == "epochs")) {
    throw ConfigError("--", name, " ", text,
                      ": expected a whole number of steps or epochs, as 500, 500steps or 2epochs");
  }
  return {.count = read_whole(name, text.substr(0, digits), 0, kMostSteps),
          .unit = unit == "epochs" ? Interval::Unit::kEpochs : Interval::Unit::kSteps};
}

LrScale read_lr_scale(std::string_view name, const std::string& text) {
  const size_t equals = std::min(text.find('='), text.size());
  LrScale scale;
  scale.rule = static_cast<LrRule>(read_word(name, text.substr(0, equals), words(LrRule{}), {}));
  if (equals < text.size()) {
    scale.base = static_cast<int>(read_whole(name, text.substr(equals + 1), 1, kMostSamples));
  }
  return scale;
}

std::string write_lr_scale(const LrScale& scale) {
  return cat(to_string(scale.rule), scale.base ? cat('=', *scale.base) : "");
}

std::string write_interval(const Interval& interval) {
  return cat(interval.count, interval.unit == Interval::Unit::kEpochs ? "epochs" : "steps");
}

}  // namespace lockstep::config
