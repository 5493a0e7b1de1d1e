#include "lockstep/train/setup.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <limits>

#include "lockstep/amp/cast_model.h"
#include "lockstep/base/cpu_features.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/config/toml_file.h"
#include "lockstep/config/world.h"
#include "lockstep/data/subset.h"
#include "lockstep/parallel/sharded_optimizer.h"
#include "lockstep/parallel/sync_batch_norm.h"
#include "lockstep/train/auto_amp.h"
#include "lockstep/train/device.h"
#include "lockstep/train/header.h"
#include "lockstep/train/memory_format.h"
#include "lockstep/world/seeds.h"

namespace lockstep::train {
namespace {

using config::TrainOptions;

// A checkpoint that is gone on from.
struct Resumed {
  std::string file;
  checkpoint::Value value;
  TrainingState state;
  std::vector<std::string> warnings;  // for each newer one that can't be read
};

Resumed read_file(const std::string& file) {
  checkpoint::Value value = checkpoint::read_pt(file);
  TrainingState state = read_state(value, file);
  return {file, std::move(value), std::move(state), {}};
}

std::optional<Resumed> read_resumed(const TrainOptions& options) {
  if (!options.resume) return std::nullopt;
  const ResumePoint point = find_resume_point(*options.resume);
  if (point.file && *point.file == *options.resume) return read_file(*point.file);
  std::vector<std::string> warnings;
  if (point.file) {
    try {
      return read_file(*point.file);
    } catch (const DataError& error) {
      warnings.push_back(error.what());
    }
  }
  auto newest = checkpoint::CheckpointStore(RunFiles{point.folder}.checkpoints()).load_newest();
  if (!newest) {
    throw ConfigError("--resume ", *options.resume, ": the run has no checkpoint that can be read; start it anew",
                      warnings.empty() ? "" : lockstep::cat(" (", warnings[0], ")"));
  }
  warnings.insert(warnings.end(), newest->warnings.begin(), newest->warnings.end());
  TrainingState state = read_state(newest->value, newest->saved.path);
  return Resumed{newest->saved.path, std::move(newest->value), std::move(state), std::move(warnings)};
}

// By lanes, not by ranks, so that any number of ranks computes with the same number of threads.
int threads_of(const TrainOptions& options, const std::optional<Resumed>& resumed, int lanes) {
  if (options.threads > 0) return options.threads;
  return resumed ? resumed->state.origin.threads : config::default_threads(usable_cores(), lanes);
}

void load_weights(const std::string& file, torch::nn::Module& module) {
  const checkpoint::Value root = checkpoint::read_pt(file);
  checkpoint::load_state_dict(module, checkpoint::find_model_state(root, file), {.file = file, .convert_dtypes = true});
}

bool shards(const TrainOptions& options, const optim::FusedOptimizer& optimizer, const World& world) {
  if (options.shard_optimizer != config::ShardOptimizer::kAuto) {
    return options.shard_optimizer == config::ShardOptimizer::kOn && world.size() > 1;
  }
  return world.size() > 1 && world.communicator().has_views() && optimizer.elementwise();
}

void apply_amp(Parts& parts) {
  amp::Options options = amp_options(parts.options.amp, parts.options.dtype);
  if (parts.options.keep_batchnorm_fp32) {
    options.keep_batchnorm_fp32 = *parts.options.keep_batchnorm_fp32 == config::OnOff::kOn;
  }
  if (parts.options.loss_scale > 0 && options.opt_level != amp::OptLevel::kO0)
    options.loss_scale = parts.options.loss_scale;
  parts.amp = amp::make_policy(options);
  parts.scaler = amp::LossScaler(amp::scaler_options(options));
}

// A collective. The weights are loaded: from here on they may be in 16 bits, and all ranks'.
void make_optimizer(Parts& parts) {
  const auto masters = amp::apply_policy(*parts.model.module, parts.amp);
  const World& world = *parts.world;
  auto whole =
      optim::make_optimizer(parts.plan.optimizer, parts.model.module->parameters(), parts.plan.optimizer_options);
  if (shards(parts.options, *whole, world)) {
    auto sharded = std::make_unique<parallel::ShardedOptimizer>(std::move(whole), world.communicator());
    parts.sharding =
        cat(sharded->shares_weights() ? "state and weights shared by " : "state sharded over ", world.size(), " ranks");
    parts.optimizer = std::move(sharded);
  } else {
    parts.optimizer = std::move(whole);
  }
  amp::give_masters(*parts.optimizer, masters);
  if (parts.options.ema > 0) parts.optimizer->keep_average(parts.options.ema);
}

// Rank 0's half: the run's configuration, and a history that ends where the run goes on.
void prepare_files(Parts& parts) {
  if (parts.world->rank() != 0) return;
  write_text(parts.files.config(), config::to_toml(parts.options));
  parts.evaluated = track::cut_jsonl(parts.files.metrics(), parts.state.step);
  checkpoint::CheckpointStore(parts.files.checkpoints()).cut_back(parts.state.step);
  if (parts.resumed_from != parts.files.interrupted()) std::remove(parts.files.interrupted().c_str());
}

// Throws ConfigError where a plateau would have nothing to go by.
Scheduler scheduler_of(const Parts& parts, const Recipe& recipe) {
  const Plan& plan = parts.plan;
  Scheduler scheduler{plan.schedule, plan.steps_per_unit, plan.plateau_metric};
  if (!scheduler.goes_by_metric()) return scheduler;
  if (plan.plateau_metric != "loss" && plan.plateau_metric != recipe.best_by()) {
    throw ConfigError("--plateau-metric ", plan.plateau_metric, ": ", recipe.name(), " has loss and ",
                      recipe.best_by());
  }
  if (parts.data.validation == nullptr && parts.data.test == nullptr) {
    throw ConfigError(
        "--schedule plateau: needs evaluations, and there is no data for them; hold some out by --validation");
  }
  return scheduler;
}

// What bears on a run's bits: the amp level, what gradients are added in, over what BatchNorm takes its statistics.
std::string precision_of(const Parts& parts) {
  const bool narrow = parts.options.comm_dtype == config::CommType::kBf16;
  return parts.amp.name() + (narrow ? ", gradients added in bfloat16" : "") +
         (parts.options.sync_bn ? ", SyncBatchNorm" : "");
}

// The run's record then says what auto stood for.
void replace_auto(Parts& parts, const std::optional<Resumed>& resumed) {
  TrainOptions& options = parts.options;
  if (options.amp != config::AmpLevel::kAuto) return;
  const SettledAmp settled = resumed ? amp_of_checkpoint(resumed->state.origin.precision)
                                     : settle_amp(options.dtype, options.device, *parts.world);
  options.amp = settled.level;
  options.dtype = settled.dtype;
  options.keep_batchnorm_fp32 = settled.keep_batchnorm_fp32;
  parts.amp_why = settled.why;
}

}  // namespace

amp::Options amp_options(config::AmpLevel level, config::HalfType half) {
  if (level == config::AmpLevel::kAuto) throw BugError("amp auto that is not settled");
  return {.opt_level = static_cast<amp::OptLevel>(level),
          .dtype = half == config::HalfType::kFp16 ? at::kHalf : at::kBFloat16};
}

void set_memory_format(torch::nn::Module& module, bool channels_last) {
  const c10::AutoGradMode no_grad(false);
  for (auto& parameter : module.parameters()) {
    if (parameter.dim() != 4) continue;
    parameter.set_data(parameter.contiguous(memory_format(channels_last)));
  }
}

Parts set_up(const TrainOptions& options, std::shared_ptr<const Recipe> recipe, std::shared_ptr<World> world) {
  Parts parts;
  parts.options = options;
  parts.world = world;
  parts.files = {options.out};
  const auto resumed = read_resumed(options);
  const int lanes = options.lanes > 0 ? options.lanes : resumed ? resumed->state.origin.lanes : world->size();
  config::check_lanes(world->size(), lanes);
  const int threads = threads_of(options, resumed, lanes);
  at::set_num_threads(threads);

  const auto seed = static_cast<uint64_t>(options.seed);
  init_seeds(seed, options.deterministic);
  parts.data = recipe->open_data(options.data, seed);
  if (options.validation) parts.data = data::with_validation(parts.data, *options.validation, seed);
  const Defaults defaults = recipe->defaults(options.preset);
  parts.plan = make_plan(options, defaults, lanes, parts.data.train->size());
  replace_auto(parts, resumed);
  apply_amp(parts);
  parts.model = recipe->make_model(seed, *parts.data.train);
  parts.device = open_device(options.device, world->local_rank());
  parts.model.module->to(parts.device);
  set_memory_format(*parts.model.module, parts.plan.channels_last);
  if (options.sync_bn) parallel::convert_sync_batchnorm(*parts.model.module, world->communicator());
  parts.state = {.step = 0,
                 .steps_per_epoch = parts.plan.steps_per_epoch,
                 .best = std::numeric_limits<double>::lowest(),
                 .origin = {.recipe = recipe->name(),
                            .arch = recipe->arch(),
                            .sample_shape = parts.data.train->sample_shape(),
                            .lanes = lanes,
                            .threads = threads,
                            .batch_size = parts.plan.batch_size,
                            .train_samples = parts.data.train->size(),
                            .seed = options.seed,
                            .precision = precision_of(parts),
                            .channels_last = parts.plan.channels_last,
                            .ema = options.ema},
                 .scheduler = scheduler_of(parts, *recipe)};
  if (!options.load.empty() && !resumed) load_weights(options.load, *parts.model.module);
  if (resumed) {
    check_origin(parts.state.origin, resumed->state.origin, resumed->file);
    restore_model(resumed->value, resumed->file, *parts.model.module);
  }
  parts.recipe = std::move(recipe);
  make_optimizer(parts);
  if (resumed) {
    restore(resumed->value, resumed->file, *parts.model.module, *parts.optimizer, parts.scaler);
    parts.state.step = resumed->state.step;
    parts.state.best = resumed->state.best;
    parts.state.scheduler.plateau =
        plateau_in(checkpoint::ValueView(resumed->value, resumed->file)["scheduler"], parts.state.scheduler);
    parts.resumed_from = resumed->file;
    parts.warnings = resumed->warnings;
  }
  prepare_files(parts);
  return parts;
}

std::string header_of(const Parts& parts) {
  const auto cpu = detect_cpu_features();
  std::string device = parts.device.is_cpu() ? "CPU" : parts.device.str();
  if (!parts.device.is_cpu()) {
  } else if (cpu.amx_bf16) {
    device += " (AMX)";
  } else if (cpu.avx512_bf16 || cpu.avx512) {
    device += cpu.avx512_bf16 ? " (AVX512-BF16)" : " (AVX-512)";
  }
  const auto size_of = [](const auto& split) { return split ? split->size() : 0; };
  const auto text_of = [](const auto& split) { return split ? split->description() : ""; };
  int64_t parameters = 0;
  for (const auto& parameter : parts.model.module->parameters()) parameters += parameter.numel();
  return header({.recipe = parts.recipe->name(),
                 .arch = parts.recipe->arch(),
                 .folder = parts.files.folder,
                 .device = device,
                 .precision = precision_of(parts) + (parts.amp_why.empty() ? "" : cat(" (auto: ", parts.amp_why, ')')),
                 .ranks = parts.world->size(),
                 .backend = parts.world->communicator().backend(),
                 .same_bits = parts.world->communicator().same_bits(),
                 .sync_bn = parts.options.sync_bn,
                 .threads = parts.state.origin.threads,
                 .snapshot_keeper = parts.world->place().launcher == "lockstep",
                 .parameters = parameters,
                 .train_data = text_of(parts.data.train),
                 .test_data = text_of(parts.data.test),
                 .validation_data = text_of(parts.data.validation),
                 .train_samples = size_of(parts.data.train),
                 .test_samples = size_of(parts.data.test),
                 .validation_samples = size_of(parts.data.validation),
                 .sharding = parts.sharding,
                 .ema = parts.options.ema,
                 .first_step = parts.state.step,
                 .resumed_from = parts.resumed_from},
                parts.plan);
}

}  // namespace lockstep::train
