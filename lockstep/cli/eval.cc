#include <ATen/Parallel.h>

#include "lockstep/amp/auto_level.h"
#include "lockstep/amp/cast_model.h"
#include "lockstep/amp/rates.h"
#include "lockstep/base/cpu_features.h"
#include "lockstep/base/env.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/subset.h"
#include "lockstep/launch/start.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/train/auto_amp.h"
#include "lockstep/train/continuation.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/options/eval_command.h"
#include "lockstep/train/run_data.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/training_state.h"
#include "lockstep/world/once.h"

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

// The samples that the run's own test was on. Where the data have no test part they were held out of the others, by the
// run's seed.
std::shared_ptr<const data::Dataset> test_part(const data::Splits& data, const std::optional<train::Origin>& origin) {
  if (data.test != nullptr || !origin) return data::complete(data, std::nullopt, /*seed=*/1).splits.test;
  const std::string& held_out = origin->option("validation");
  const auto seed = static_cast<uint64_t>(origin->number("seed"));
  const double percent = held_out.empty() ? 0 : config::read_number("validation", held_out, 0, 100);
  return data::complete(data, percent, seed).splits.test;
}

// Says that the data are not those of the run that made the weights, as far as its files tell; empty if they are.
std::string other_data(const train::EvalOptions& options, const std::optional<train::Origin>& origin,
                       const data::Splits& data) {
  const auto name = [](const std::string& path) { return path.empty() ? std::string("data made on the spot") : path; };
  const bool same =
      options.run_data && (*options.run_data == options.data || train::same_place(*options.run_data, options.data));
  if (options.run_data && !same) {
    return cat("evaluated on ", name(options.data), ", and the run was trained on ", name(*options.run_data));
  }
  if (same || !origin) return "";
  const std::string& held_out = origin->option("validation");
  const double percent = held_out.empty() ? 0 : config::read_number("validation", held_out, 0, 100);
  const auto train = std::ssize(data::hold_out(data.train->size(), percent, /*seed=*/1).train);
  if (train == origin->train_samples && data.train->sample_shape() == origin->sample_shape) return "";
  return cat("evaluated on ", name(options.data), ", and the run was trained on other data: ", origin->train_samples,
             " samples, where these have ", train, ", or samples of another shape");
}

// The run's own number of threads gives its evaluation's bits.
int threads_of(const parallel::ProcessOptions& processes, const std::optional<train::Origin>& origin,
               const World& world) {
  const int of_run = origin ? static_cast<int>(origin->number("threads")) : 0;
  return parallel::threads_or_default(processes.threads > 0 ? processes.threads : of_run, usable_cores(), world.size());
}

nlohmann::ordered_json results(const train::Evaluation& result, std::optional<int64_t> step, const std::string& file) {
  nlohmann::ordered_json all = {{"file", file}, {"step", nullptr}, {"samples", result.samples}, {"loss", result.loss}};
  if (step) all["step"] = *step;
  all.update(result.metrics);
  return all;
}

}  // namespace

int eval(const Program& program, const Arguments& args, const Recipes& recipes) {
  train::EvalCommand command(program.name, {recipes.begin(), recipes.end()});
  if (const auto help = command.read(args)) return print(*help), 0;
  const train::EvalOptions& options = command.options();
  if (starts_ranks(program, options.processes.nproc)) {
    return launch::start_ranks(program.of_ranks, command.arguments(), options.processes, options.json);
  }
  const auto world = init();
  // Rank 0's choice: of a run under way, another rank may have found a newer checkpoint.
  train::NamedCheckpoint named{options.load};
  once(*world, OnceScope::kWorld, [&] { named = train::find_checkpoint("--load", options.load); });
  const std::string file = comm::gather_texts(world->communicator(), named.file).at(0);
  const checkpoint::Value root = checkpoint::read_pt(file);
  const auto origin = train::find_origin(root, file);
  command.take_recorded(origin ? origin->options : config::Record());
  const train::ResolvedAmp precision = train::amp_of_evaluation(options.precision, origin, *world);
  const auto recipe = std::dynamic_pointer_cast<train::Recipe>(command.recipe());
  at::set_num_threads(threads_of(options.processes, origin, *world));
  const train::Defaults defaults = recipe->defaults("");
  const auto data = recipe->open_data(train::request_of(*world, options.data, 1, defaults.channels_last));
  const auto test = test_part(data, origin);
  const auto model = recipe->make_model(1, *test);
  checkpoint::load_state_dict(*model.module, checkpoint::find_evaluated_state(root, file),
                              {.file = file, .convert_dtypes = true});
  const amp::Policy amp = policy_of(precision);
  const Logger log = Logger::from_environment("");
  for (const auto& warning : named.warnings) log.warning(warning);
  const std::string slow = amp::slow_warning(amp, detect_cpu_features(), amp::read_rates(amp::cache_folder()));
  if (world->rank() == 0 && !slow.empty()) log.warning(slow);
  train::set_memory_format(*model.module, defaults.channels_last);
  amp::cast_models({model.module.get()}, amp);
  const auto result =
      train::evaluate(*recipe, model, *test, world->communicator(),
                      {.chunk = options.batch_size.value_or(defaults.eval_batch),
                       .channels_last = defaults.channels_last,
                       .amp = amp,
                       .workers = data::usual_workers(*test, usable_cores(), world->place().local_size)});
  if (world->rank() != 0) return 0;
  const std::string other = other_data(options, origin, data);
  if (!other.empty()) log.warning(other);
  if (options.json) {
    print(results(result, origin ? std::optional(train::read_state(root, file).step) : std::nullopt, file).dump() +
          '\n');
  } else {
    std::string line = cat(file, ": loss ", result.loss);
    for (const auto& [name, value] : result.metrics.items()) line += cat(", ", name, ' ', value.dump());
    print(cat(line, " on ", result.samples, " test samples of ", test->description(),
              precision_text(amp, precision.why), '\n'));
  }
  return 0;
}

}  // namespace lockstep::cli
