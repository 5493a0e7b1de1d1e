#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/evaluated_model.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/cli/worst_samples.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/skipped_samples.h"
#include "lockstep/launch/start.h"
#include "lockstep/loop/skip_list.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/predict/confusion.h"
#include "lockstep/train/auto_amp.h"
#include "lockstep/train/evaluated_data.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/options/eval_command.h"
#include "lockstep/train/plan.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/shared_resume.h"
#include "lockstep/train/training_state.h"

namespace lockstep::cli {
namespace {

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

std::optional<train::Part> part_of(const std::optional<train::EvalSplit>& split) {
  if (!split) return std::nullopt;
  return *split == train::EvalSplit::kTrain        ? train::Part::kTrain
         : *split == train::EvalSplit::kValidation ? train::Part::kValidation
                                                   : train::Part::kTest;
}

// A rank without a chunk has counted nothing. A collective.
at::Tensor sum_over_ranks(const at::Tensor& counts, int64_t classes, World& world) {
  const at::Tensor size = at::full({1}, counts.defined() ? counts.size(0) : classes, at::kLong);
  world.communicator().all_reduce(size, comm::ReduceOp::kMax);
  const int64_t most = size.item<int64_t>();
  at::Tensor sum = at::zeros({most, most}, at::kLong);
  if (counts.defined()) sum.slice(0, 0, counts.size(0)).slice(1, 0, counts.size(1)).copy_(counts);
  world.communicator().all_reduce(sum, comm::ReduceOp::kSum);
  return sum;
}

nlohmann::ordered_json results(const train::Evaluation& result, std::optional<int64_t> step, const std::string& file,
                               const std::string& weights) {
  nlohmann::ordered_json all = {
      {"file", file}, {"weights", weights}, {"step", nullptr}, {"samples", result.samples}, {"loss", result.loss}};
  if (step) all["step"] = *step;
  if (result.left_out > 0) all["left_out"] = result.left_out;
  all.update(result.metrics);
  return all;
}

struct Told {
  const train::Evaluation& result;
  const data::Dataset& samples;
  train::Part part;             // that they are of
  std::string file;             // the checkpoint
  std::string weights;          // their name in it; empty: its own tensors
  std::optional<int64_t> step;  // its
  std::string precision;        // for people
  at::Tensor confused;          // undefined: not counted
  const predict::WorstSheet* worst = nullptr;
};

void print_result(const Told& told, const train::EvalOptions& options) {
  if (options.json) {
    nlohmann::ordered_json all = results(told.result, told.step, told.file, told.weights);
    if (told.confused.defined()) all["confusion"] = predict::confusion_json(told.confused);
    if (told.worst != nullptr) all["worst"] = told.worst->json();
    return print(all.dump() + '\n');
  }
  print(cat(told.file, ": ", text_of(told.result, train::text_of(told.part)), " of ", told.samples.description(),
            told.precision, '\n'));
  if (told.confused.defined()) print(predict::confusion_text(told.confused, told.samples.class_names()));
  if (told.worst != nullptr) print(told.worst->text(options.out));
}

// Evaluates the checkpoint that the line names, and prints what rank 0 has to say. A collective.
void evaluate_checkpoint(train::EvalCommand& command, c10::Device device, World& world, const Logger& log) {
  const train::EvalOptions& options = command.options();
  const train::NamedCheckpoint named = train::find_checkpoint("--load", options.weights.load, world);
  const std::string& file = named.file;
  const checkpoint::Value root =
      checkpoint::open_checkpoint(file, {.ignore_unknown = options.weights.ignore_unknown, .checks_on_the_way = true});
  const bool is_paddle = checkpoint::is_paddle_file(file);  // now, for a run under way may remove it
  const auto origin = train::find_origin(root, file);
  command.take_recorded(origin ? origin->options : config::Record());
  const train::ResolvedAmp precision = train::amp_of_evaluation(options.precision, origin, options.device.kind, world);
  const auto recipe = std::dynamic_pointer_cast<train::Recipe>(command.recipe());
  at::set_num_threads(threads_of(options.processes, origin, world));
  const train::Defaults defaults = recipe->defaults();
  const bool channels_last = train::takes_channels_last(train::ChannelsLast::kAuto, defaults);
  const auto state = origin ? std::optional(train::read_state(root, file)) : std::nullopt;
  const int64_t met = state ? std::ssize(state->skipped) : 0;
  const bool passes_over_bad = met > 0 || options.skip_bad.value_or(options.run_skip_bad) > 0;
  const train::EvaluatedData data = train::open_evaluated_data(*recipe,
                                                               {.path = options.data_path(),
                                                                .named = !options.data.empty(),
                                                                .run_data = options.run_data,
                                                                .run_folder = train::run_of(file),
                                                                .channels_last = channels_last,
                                                                .passes_over_bad = passes_over_bad,
                                                                .part = part_of(options.split)},
                                                               origin, world);
  const data::Dataset& test = *data.samples;
  const auto model = recipe->make_model(1, test);
  const amp::Policy amp = policy_of(precision);
  const std::string weights = load_for_evaluation(model, {root, file, options.weights, is_paddle},
                                                  {device, channels_last, amp}, world, log, &test);
  for (const auto& warning : named.warnings) log.warning(warning);
  for (const auto& warning : data.warnings) {
    if (world.rank() == 0) log.warning(warning);
  }
  const auto skipped = skip_list(options, data.own, met, world);
  predict::Confusion confusion;
  predict::SampleScores scores;
  const train::EvaluationOptions how{.chunk = options.batch_size.value_or(defaults.eval_batch),
                                     .channels_last = channels_last,
                                     .amp = amp,
                                     .device = device,
                                     .workers = data::usual_workers(test, usable_cores(), world.place().local_size),
                                     .skipped = skipped.get(),
                                     .on_output = [&](const data::Batch& batch, const at::Tensor& output) {
                                       if (options.confusion) confusion.add(output, batch.target());
                                       if (options.worst > 0) scores.add(output, batch.target());
                                     }};
  const auto result = evaluate(*recipe, model, test, world, how);
  const at::Tensor confused =
      options.confusion ? sum_over_ranks(confusion.counts(), test.classes(), world) : at::Tensor();
  std::vector<predict::RankedSample> worst;
  if (options.worst > 0) worst = worst_samples(scores, options.worst, test, how.chunk, skipped.get(), world);
  if (world.rank() != 0) return;
  if (skipped != nullptr && !data.own) {  // else the run has told them
    for (const data::BadSample& each : skipped->all()) log.warning("left out: ", each.why);
  }
  std::optional<predict::WorstSheet> sheet;
  if (options.worst > 0) sheet.emplace(draw(worst, *recipe, model, data.samples, how));
  print_result({.result = result,
                .samples = test,
                .part = data.part,
                .file = file,
                .weights = weights,
                .step = state ? std::optional(state->step) : std::nullopt,
                .precision = precision_text(amp, precision.why),
                .confused = confused,
                .worst = sheet ? &*sheet : nullptr},
               options);
  if (sheet) sheet->write(options.out);  // last: its failure leaves the figures
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
  evaluate_checkpoint(command, device, *world, log);
  return 0;
}

}  // namespace lockstep::cli
