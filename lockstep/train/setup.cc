#include "lockstep/train/setup.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <filesystem>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/checkpoint/load_model.h"
#include "lockstep/checkpoint/name_prefix.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/data/byte_tables.h"
#include "lockstep/loop/skip_list.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/parallel/sharded_optimizer.h"
#include "lockstep/parallel/sync_batch_norm.h"
#include "lockstep/parallel/threads.h"
#include "lockstep/train/auto_amp.h"
#include "lockstep/train/best_metric.h"
#include "lockstep/train/continuation.h"
#include "lockstep/train/device.h"
#include "lockstep/train/device_facts.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/form.h"
#include "lockstep/train/jpeg_decoder_of.h"
#include "lockstep/train/memory_format.h"
#include "lockstep/train/pipeline_form.h"
#include "lockstep/train/prepare_folder.h"
#include "lockstep/train/run_data.h"
#include "lockstep/train/shared_resume.h"
#include "lockstep/train/trial_evaluation.h"
#include "lockstep/train/trial_lane.h"
#include "lockstep/world/seeds.h"

namespace lockstep::train {
namespace {

// Returns what was loaded, for people.
std::string load_weights(const WeightsOptions& options, torch::nn::Module& module, const data::Dataset& data) {
  const std::string& file = options.load;
  const checkpoint::Value root =
      checkpoint::open_checkpoint(file, {.ignore_unknown = options.ignore_unknown, .checks_on_the_way = true});
  const auto loaded = train::load_model(
      module, root,
      {.file = file,
       .strip_prefix = options.strip_prefix,
       .average = options.average == TakesAverage::kOn ? checkpoint::Average::kOn : checkpoint::Average::kOff,
       .paddle = checkpoint::is_paddle_file(file),
       .partly = options.partly},
      &data);
  return loaded.report.text().empty() ? file : cat(file, ", ", loaded.report.text());
}

// Whether each rank is sure to have all of its optimizer's state, in memory.
bool keeps_whole_state_here(const TrainOptions& options, const World& world) {
  if (options.device.kind != DeviceKind::kCpu) return false;
  return world.size() == 1 || options.parallel.shard_optimizer == parallel::ShardOptimizer::kOff;
}

// set_up() goes through the stages below. Each takes the result of the one before, so that none can come too early.

// A run in its world: its lanes and threads, its seeds set, and the checkpoint that it resumes from, if any.
struct Begun {
  TrainOptions options;
  std::shared_ptr<Recipe> recipe;
  std::shared_ptr<World> world;
  RunDisks disks;
  std::optional<ResumedCheckpoint> resumed;
  std::vector<std::string> warnings = {};  // for people: newer checkpoints in the folder of --load, which are damaged
  int lanes = 1;
  int threads = 1;
};

Begun begin(const TrainOptions& options, std::shared_ptr<Recipe> recipe, std::shared_ptr<World> world,
            const RunDisks& disks) {
  Begun run{options, std::move(recipe), std::move(world), disks, std::nullopt};
  if (options.resume) {
    run.resumed = read_resumed(*options.resume, *run.world, run.disks, options.out,
                               {.takes_optimizers = keeps_whole_state_here(options, *run.world)});
  }
  if (run.resumed) check_skip_bad(*run.resumed, options.data.skip_bad);
  if (std::string& load = run.options.weights.load; !run.resumed && !load.empty()) {
    NamedCheckpoint named = find_checkpoint("--load", load, *run.world);
    load = std::move(named.file);
    run.warnings = std::move(named.warnings);
  }
  const auto recorded = [&run](const char* name) { return static_cast<int>(run.resumed->state.origin.number(name)); };
  const parallel::ParallelOptions& asked = options.parallel;
  run.lanes = asked.lanes > 0 ? asked.lanes : run.resumed ? recorded("lanes") : run.world->size();
  asked.check_ranks(run.world->size(), run.lanes);
  // By lanes, not by ranks, so that any number of ranks computes with the same number of threads.
  run.threads = asked.threads > 0 ? asked.threads
                : run.resumed     ? recorded("threads")
                                  : parallel::default_threads(usable_cores(), run.lanes);
  const bool by_cores = asked.threads == 0 && !run.resumed;
  if (by_cores) run.threads = parallel::least_of_ranks(run.threads, run.world->communicator());
  at::set_num_threads(run.threads);
  init_seeds(static_cast<uint64_t>(options.seed), options.deterministic);
  return run;
}

// A run whose data are open. The options say how much was held out of them, too.
struct Fed : Begun {
  RunData data;
};

// A collective.
Fed open_data(Begun begun) {
  RunData data = open_run_data(*begun.recipe, begun.options, *begun.world, begun.resumed ? &*begun.resumed : nullptr);
  begun.options.data.validation = data.held_out.percent;
  begun.options.data.hold_out = data.held_out.files;
  return {{std::move(begun)}, std::move(data)};
}

// A run with its plan, which needs the data's size. The options say what --amp auto stands for, too.
struct Planned : Fed {
  Plan plan;
  TrainOptions resolved;
  config::Record usual;  // the record of a run with the recipe's defaults
  amp::Options amp;
  std::string amp_why;
};

// A collective.
std::string replace_auto(Begun& run) {
  amp::PrecisionOptions& precision = run.options.precision;
  if (precision.amp != amp::AmpLevel::kAuto) return "";
  const ResolvedAmp resolved = run.resumed ? amp_of_checkpoint(run.resumed->state.origin)
                                           : resolve_amp(precision.dtype, run.options.device.kind, *run.world);
  precision.amp = resolved.level;
  precision.dtype = resolved.dtype;
  precision.keep_batchnorm_fp32 = resolved.keep_batchnorm_fp32;
  return resolved.why;
}

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).lexically_normal().string(); }

// The options that the run took, with everything that was left open resolved.
TrainOptions resolved_options(const Fed& run, const Defaults& defaults, const Plan& plan, const amp::Policy& policy) {
  TrainOptions resolved = resolve_options(run.options, defaults, plan);
  resolved.parallel.threads = run.threads;
  amp::PrecisionOptions& precision = resolved.precision;
  if (!policy.casts()) precision.dtype = amp::PrecisionOptions{}.dtype;
  if (!policy.casts()) precision.loss_scale = amp::PrecisionOptions{}.loss_scale;
  precision.keep_batchnorm_fp32.reset();
  if (policy.cast_model) precision.keep_batchnorm_fp32 = policy.keep_batchnorm_fp32;
  // Wherever the file is read, it means the same data and weights.
  for (std::string* path : {&resolved.data.path, &resolved.weights.load}) {
    if (!path->empty()) *path = absolute(*path);
  }
  if (resolved.weights.load.empty()) resolved.weights = resolved.loaded;
  return resolved;
}

config::Record usual_record(const Fed& run, const Defaults& defaults, int batch_size) {
  TrainOptions options;
  options.recipe = run.options.recipe;
  options.batch_size = batch_size;  // the defaults of a schedule depend on it
  if (run.data.held_usual) options.data.validation = run.data.held_out.percent;
  const Plan plan = make_plan(options, defaults, run.lanes, run.data.splits.train->size());
  TrainOptions resolved = resolve_options(options, defaults, plan);
  resolved.parallel.threads = run.threads;
  return RunRows(resolved, *run.recipe).record();
}

Planned plan_run(Fed fed) {
  const Defaults defaults = fed.recipe->defaults();
  Plan plan = make_plan(fed.options, defaults, fed.lanes, fed.data.splits.train->size());
  std::string why = replace_auto(fed);
  const amp::PrecisionOptions& precision = fed.options.precision;
  amp::Options amp = amp_options(precision.amp, precision.dtype);
  amp.keep_batchnorm_fp32 = precision.keep_batchnorm_fp32;
  if (precision.loss_scale > 0 && amp.opt_level != amp::OptLevel::kO0) amp.loss_scale = precision.loss_scale;
  TrainOptions resolved = resolved_options(fed, defaults, plan, amp::make_policy(amp));
  config::Record usual = usual_record(fed, defaults, plan.batch_size);
  return {{std::move(fed)}, std::move(plan), std::move(resolved), std::move(usual), amp, std::move(why)};
}

// The record of the run.
Origin origin_of(const Planned& run) {
  return {.options = RunRows(run.resolved, *run.recipe).record(),
          .sample_shape = run.data.splits.train->sample_shape(),
          .train_samples = run.data.splits.train->size(),
          .data = run.data.facts,
          .versions = versions_of_build()};
}

// Throws ConfigError for a plateau of another metric than the recipe's.
Scheduler scheduler_of(const Planned& run) {
  const Plan& plan = run.plan;
  Scheduler scheduler{plan.schedule, plan.steps_per_unit, plan.plateau_metric};
  if (!scheduler.goes_by_metric()) return scheduler;
  if (plan.plateau_metric != "loss" && plan.plateau_metric != run.recipe->best_by()) {
    throw ConfigError("--plateau-metric ", plan.plateau_metric, ": ", run.recipe->name(), " has loss and ",
                      run.recipe->best_by());
  }
  if (run.recipe->lower_is_better() && plan.plateau_metric == run.recipe->best_by()) {
    std::get<schedule::PlateauLr>(scheduler.options.shape).mode = schedule::PlateauMode::kMin;
  }
  return scheduler;
}

// A run with its model on its device, in its memory format, with the weights that the seed draws.
struct Built : Planned {
  Model model;
  parallel::StagePlan stages;
  c10::Device device{c10::kCPU};
  std::string device_text;
};

// The device as the header names it. A collective.
std::string text_of_device(c10::Device device, World& world, bool may_share) {
  const DeviceFacts facts = facts_of(device);
  const std::string shared = shared_gpus(world, device, facts, may_share);
  return shared.empty() ? facts.name : cat(facts.name, ", ", shared);
}

// A collective.
Built build_model(Planned planned) {
  Model model = planned.recipe->make_model(static_cast<uint64_t>(planned.options.seed), *planned.data.splits.train);
  const bool may_share = planned.options.may_share_gpus();
  const c10::Device device = open_device(planned.options.device, node_ranks(*planned.world, may_share));
  std::string device_text = text_of_device(device, *planned.world, may_share);
  model.module->to(device);
  set_memory_format(*model.module, planned.plan.channels_last);
  const parallel::ParallelOptions& asked = planned.options.parallel;
  if (asked.sync_bn && asked.form != parallel::ParallelForm::kDp) {
    parallel::convert_sync_batchnorm(*model.module, planned.world->communicator());
  }
  parallel::StagePlan stages;
  if (asked.form == parallel::ParallelForm::kPipeline) {
    const int count = asked.stages > 0 ? asked.stages : planned.world->size();
    stages = PipelineForm::plan(*planned.recipe, model, planned.data.splits.train->sample_shape(), count);
  }
  return {{std::move(planned)}, std::move(model), std::move(stages), device, std::move(device_text)};
}

// A run whose model has its first weights: the seed's, those of --load, or the resumed checkpoint's.
struct Weighted : Built {
  TrainingState state;
  std::vector<std::string> changes;
  std::string loaded;  // of --load, for people
};

Weighted load_start(Built built) {
  TrainingState state{.step = 0,
                      .steps_per_epoch = built.plan.steps_per_epoch,
                      .best = BestMetric(*built.recipe).worst(),
                      .best_by = BestMetric(*built.recipe).text(),
                      .best_at_interval = BestMetric(*built.recipe).worst(),
                      .origin = origin_of(built),
                      .scheduler = scheduler_of(built)};
  std::vector<std::string> changes;
  std::string loaded;
  if (built.resumed) {
    const ResumedCheckpoint& resumed = *built.resumed;
    const RunRows rows(built.options, *built.recipe);
    rows.check(state.origin, resumed.state.origin, resumed.file);
    if (const std::string& was = resumed.state.best_by; !was.empty() && was != state.best_by) {
      throw ConfigError(resumed.file, ": its best.pt goes by ", was, "; the recipe's goes by ", state.best_by,
                        " now; start a new run with --load");
    }
    changes = rows.changes(state.origin, resumed.state.origin);
    restore_model(resumed.value, resumed.file, *built.model.module);
  } else if (!built.options.weights.load.empty()) {
    loaded = load_weights(built.options.weights, *built.model.module, *built.data.splits.train);
  }
  return {{std::move(built)}, std::move(state), std::move(changes), std::move(loaded)};
}

// A run with its optimizer. From here on weights may be in 16 bits, and shared by the ranks.
struct Optimized : Weighted {
  std::unique_ptr<optim::AnyOptimizer> optimizer;
  std::unique_ptr<amp::MixedPrecision> mixed;
  std::string sharding;  // for people; empty: it is whole
};

// A collective.
Optimized make_optimizer(Weighted run) {
  const auto groups = optim::group_parameters(*run.model.module, run.plan.grouping);
  auto whole = optim::make_optimizer(run.plan.optimizer, groups, run.plan.optimizer_options);
  std::unique_ptr<optim::AnyOptimizer> optimizer;
  std::string sharding;
  if (has_owners(run.options) && !whole->elementwise()) {
    throw ConfigError("--parallel ", config::word_of(run.options.parallel.form), ": --optimizer ", run.plan.optimizer,
                      " needs the norms of whole layers, and is not divided among ranks; use another optimizer, or "
                      "--parallel ddp or dp");
  }
  if (shards_optimizer(run.options, *whole, *run.world)) {
    const std::vector<int> owners = owners_of(run.options, run.stages, *whole, *run.world);
    auto sharded = std::make_unique<parallel::ShardedOptimizer>(std::move(whole), run.world->communicator(), owners);
    std::vector<int> gathers = run.disks.savers;
    if (gathers.front() != 0) gathers.insert(gathers.begin(), 0);  // which tells the weights' hash
    sharded->gather_on(std::move(gathers));
    sharding = sharding_text(run.options, *sharded, *run.world);
    optimizer = std::move(sharded);
  } else {
    optimizer = std::move(whole);
  }
  auto mixed = std::make_unique<amp::MixedPrecision>(std::vector<torch::nn::Module*>{run.model.module.get()},
                                                     std::vector<optim::OptimizerRef>{*optimizer}, run.amp);
  if (run.options.optimizer.ema > 0) optimizer->keep_average(run.options.optimizer.ema);
  return {{std::move(run)}, std::move(optimizer), std::move(mixed), std::move(sharding)};
}

// Puts the parts together, and optimizer, scaler and schedule where the checkpoint left them.
Parts restore_position(Optimized run, const std::optional<ResumedCheckpoint>& from) {
  Parts parts{.options = std::move(run.options),
              .resolved = std::move(run.resolved),
              .usual = std::move(run.usual),
              .recipe = std::move(run.recipe),
              .world = std::move(run.world),
              .plan = std::move(run.plan),
              .data = std::move(run.data.splits),
              .files_of_data = std::move(run.data.files),
              .findings = std::move(run.data.findings),
              .workers = run.data.workers,
              .skipped = nullptr,
              .model = std::move(run.model),
              .stages = std::move(run.stages),
              .optimizer = std::move(run.optimizer),
              .sharding = std::move(run.sharding),
              .mixed = std::move(run.mixed),
              .amp_why = std::move(run.amp_why),
              .device = run.device,
              .device_text = std::move(run.device_text),
              .state = std::move(run.state),
              .files = {},
              .disks = std::move(run.disks),
              .changes = std::move(run.changes),
              .loaded = std::move(run.loaded),
              .warnings = std::move(run.warnings)};
  parts.files.folder = parts.options.out;
  parts.skipped = loop::skip_list(*parts.world, parts.options.data.skip_bad);
  if (!from) return parts;
  const ResumedCheckpoint& resumed = *from;
  restore(resumed.value, resumed.file, *parts.model.module, *parts.optimizer, parts.mixed->scaler(),
          checkpoint::take_elements);
  parts.state.step = resumed.state.step;
  parts.state.best = resumed.state.best;
  parts.state.best_at_interval = resumed.state.best_at_interval;
  parts.state.since_best = resumed.state.since_best;
  parts.state.is_best = resumed.state.is_best;
  parts.state.unevaluated = resumed.state.unevaluated;
  parts.state.skipped = resumed.state.skipped;
  if (parts.skipped) parts.skipped->restore(resumed.state.skipped);
  parts.state.scheduler.plateau =
      plateau_in(checkpoint::ValueView(resumed.value, resumed.file)["scheduler"], parts.state.scheduler);
  parts.resumed_from = resumed.file;
  for (const auto& each : resumed.damaged) {
    parts.warnings.push_back(cat(each.why, "; going on from ", parts.resumed_from));
  }
  parts.forked = !resumed.in_place.value_or(same_place(run_of(resumed.file), parts.files.folder));
  if (parts.forked) parts.resolved.parent = absolute(resumed.file);
  return parts;
}

}  // namespace

amp::Options amp_options(amp::AmpLevel level, amp::HalfType half) {
  if (level == amp::AmpLevel::kAuto) throw BugError("amp auto that is not resolved");
  return {.opt_level = amp::parse_opt_level(config::word_of(level)),
          .dtype = half == amp::HalfType::kFp16 ? at::kHalf : at::kBFloat16};
}

void set_memory_format(torch::nn::Module& module, bool channels_last) {
  const c10::AutoGradMode no_grad(false);
  for (auto& parameter : module.parameters()) {
    if (parameter.dim() != 4) continue;
    parameter.set_data(parameter.contiguous(memory_format(channels_last)));
  }
}

Parts set_up(const TrainOptions& options, std::shared_ptr<Recipe> recipe, std::shared_ptr<World> world,
             const RunDisks& disks) {
  RunRows(options, *recipe).check_ranks(world->communicator());
  Fed fed = open_data(begin(options, std::move(recipe), std::move(world), disks));
  Built built = build_model(plan_run(std::move(fed)));
  Optimized run = make_optimizer(load_start(std::move(built)));
  const std::optional<ResumedCheckpoint> from = std::exchange(run.resumed, std::nullopt);
  Parts parts = restore_position(std::move(run), from);
  if (from && !parts.forked && !options.overwrite) refuse_going_back(parts.files, *from, *options.resume);
  check_form(parts);
  if (data::has_encoded(parts.data.train->fields())) parts.decoder = jpeg_decoder_of(parts.device);
  try_evaluation(parts);
  try_lone_sample(parts);
  prepare_folder(parts, from);
  return parts;
}

}  // namespace lockstep::train
