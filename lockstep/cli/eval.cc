#include <ATen/Parallel.h>

#include <algorithm>

#include "lockstep/amp/auto_level.h"
#include "lockstep/amp/cast_model.h"
#include "lockstep/amp/rates.h"
#include "lockstep/base/cpu_features.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/skipped_samples.h"
#include "lockstep/launch/start.h"
#include "lockstep/loop/skip_list.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/train/auto_amp.h"
#include "lockstep/train/continuation.h"
#include "lockstep/train/device_facts.h"
#include "lockstep/train/evaluated_data.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/options/eval_command.h"
#include "lockstep/train/plan.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/training_state.h"
#include "lockstep/world/once.h"
#include "lockstep/world/seeds.h"

namespace lockstep::cli {
namespace {

amp::Policy policy_of(const train::ResolvedAmp& resolved) {
  amp::Options options = train::amp_options(resolved.level, resolved.dtype);
  options.keep_batchnorm_fp32 = resolved.keep_batchnorm_fp32;
  return amp::make_policy(options);
}

// ", at O1 bfloat16 (as in the run)"; empty in fp32.
std::string precision_text(const amp::Policy& policy, const std::string& why) {
  if (!policy.casts()) return "";
  return cat(", at ", policy.name(), why.empty() ? "" : cat(" (", why, ')'));
}

// The run's own number of threads gives its evaluation's bits.
int threads_of(const parallel::ProcessOptions& processes, const std::optional<train::Origin>& origin,
               const World& world) {
  const int of_run = origin ? static_cast<int>(origin->number("threads")) : 0;
  return parallel::threads_or_default(processes.threads > 0 ? processes.threads : of_run, usable_cores(), world.size());
}

// Where samples that can't be read are listed; null: the first one is the evaluation's error. Of the run's own data as
// many are left out as the run has met, or would have passed over: which they are, its evaluation decides anew, as the
// run's own did.
std::shared_ptr<data::SkippedSamples> skip_list(const train::EvalOptions& options, bool own, int64_t met,
                                                const World& world) {
  if (!own) return loop::skip_list(world, options.skip_bad.value_or(0));
  return loop::skip_list(world, options.skip_bad ? met + *options.skip_bad : std::max(met, options.run_skip_bad));
}

train::Evaluation evaluate(const train::Recipe& recipe, const train::Model& model, const data::Dataset& data,
                           World& world, const train::EvaluationOptions& options) {
  try {
    return train::evaluate(recipe, model, data, world.communicator(), options);
  } catch (const DataError& error) {
    if (options.skipped != nullptr) throw;
    throw DataError(error.what(), " (--skip-bad N leaves out up to N such samples)");
  }
}

nlohmann::ordered_json results(const train::Evaluation& result, std::optional<int64_t> step, const std::string& file) {
  nlohmann::ordered_json all = {{"file", file}, {"step", nullptr}, {"samples", result.samples}, {"loss", result.loss}};
  if (step) all["step"] = *step;
  if (result.left_out > 0) all["left_out"] = result.left_out;
  all.update(result.metrics);
  return all;
}

// Ranks add their sums on CPUs, so NCCL would not notice that two of them have one GPU. On GPUs kernels repeat their
// bits, as in training by default.
c10::Device open_own_device(const train::DeviceChoice& wanted, World& world, const Logger& log) {
  const c10::Device device = open_device(wanted, train::node_ranks(world, /*may_share=*/false), log);
  train::shared_gpus(world, device, train::facts_of(device), /*may_share=*/false);
  if (!device.is_cpu()) init_seeds(/*seed=*/0, /*deterministic=*/true);
  return device;
}

}  // namespace

int eval(const Program& program, const Arguments& args, const Recipes& recipes) {
  train::EvalCommand command(program.name, {recipes.begin(), recipes.end()});
  std::optional<std::string> help;
  bool starts = false;
  const int mistake = prepare_rank([&] {
    help = command.read(args);
    starts = !help && starts_ranks(program, command.options().processes.nproc);
    if (help || starts) return;
    train::require_gpu(command.options().device);
    train::let_gpus_repeat(command.options().device, /*deterministic=*/true);
    check_world({});
  });
  if (mistake != 0) return mistake;
  if (help) return print(*help), 0;
  const train::EvalOptions& options = command.options();
  if (starts) {
    return launch::start_evaluation(program.of_ranks, command);
  }
  const auto world = init();
  const Logger log = Logger::from_environment("");
  const c10::Device device = open_own_device(options.device, *world, log);
  // Rank 0's choice: of a run under way, another rank may have found a newer checkpoint.
  train::NamedCheckpoint named{options.load};
  once(*world, OnceScope::kWorld, [&] { named = train::find_checkpoint("--load", options.load); });
  const std::string file = comm::gather_texts(world->communicator(), named.file).at(0);
  const checkpoint::Value root = checkpoint::read_pt(file);
  const auto origin = train::find_origin(root, file);
  command.take_recorded(origin ? origin->options : config::Record());
  const train::ResolvedAmp precision = train::amp_of_evaluation(options.precision, origin, options.device.kind, *world);
  const auto recipe = std::dynamic_pointer_cast<train::Recipe>(command.recipe());
  at::set_num_threads(threads_of(options.processes, origin, *world));
  const train::Defaults defaults = recipe->defaults("");
  const bool channels_last = train::takes_channels_last(train::ChannelsLast::kAuto, defaults);
  const train::EvaluatedData data = train::open_evaluated_data(*recipe,
                                                               {.path = options.data_path(),
                                                                .named = !options.data.empty(),
                                                                .run_data = options.run_data,
                                                                .run_folder = train::run_of(file),
                                                                .channels_last = channels_last},
                                                               origin, *world);
  const data::Dataset& test = *data.samples;
  const auto model = recipe->make_model(1, test);
  checkpoint::load_state_dict(*model.module, checkpoint::find_evaluated_state(root, file),
                              {.file = file, .convert_dtypes = true});
  const amp::Policy amp = policy_of(precision);
  for (const auto& warning : named.warnings) log.warning(warning);
  for (const auto& warning : data.warnings) {
    if (world->rank() == 0) log.warning(warning);
  }
  const std::string slow = amp::slow_warning(amp, detect_cpu_features(), amp::read_rates(amp::cache_folder()));
  if (world->rank() == 0 && device.is_cpu() && !slow.empty()) log.warning(slow);
  model.module->to(device);
  train::set_memory_format(*model.module, channels_last);
  amp::cast_models({model.module.get()}, amp);
  const auto state = origin ? std::optional(train::read_state(root, file)) : std::nullopt;
  const auto skipped = skip_list(options, data.own, state ? std::ssize(state->skipped) : 0, *world);
  const auto result = evaluate(*recipe, model, test, *world,
                               {.chunk = options.batch_size.value_or(defaults.eval_batch),
                                .channels_last = channels_last,
                                .amp = amp,
                                .device = device,
                                .workers = data::usual_workers(test, usable_cores(), world->place().local_size),
                                .skipped = skipped.get()});
  if (world->rank() != 0) return 0;
  if (skipped != nullptr && !data.own) {  // else the run has told them
    for (const data::BadSample& each : skipped->all()) log.warning("left out: ", each.why);
  }
  if (options.json) {
    print(results(result, state ? std::optional(state->step) : std::nullopt, file).dump() + '\n');
  } else {
    print(
        cat(file, ": ", text_of(result, "test"), " of ", test.description(), precision_text(amp, precision.why), '\n'));
  }
  return 0;
}

}  // namespace lockstep::cli
