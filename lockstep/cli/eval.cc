#include <ATen/Parallel.h>

#include "lockstep/amp/cast_model.h"
#include "lockstep/base/env.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/cli/commands.h"
#include "lockstep/parallel/options/lanes.h"
#include "lockstep/train/auto_amp.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/options/eval_command.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/training_state.h"

namespace lockstep::cli {
namespace {

// Auto is taken as it is fastest, not as the checkpoint's run had it: another machine may evaluate it.
amp::Policy policy_of(amp::AmpLevel level, World& world) {
  train::ResolvedAmp resolved{level, amp::HalfType::kBf16, ""};
  if (level == amp::AmpLevel::kAuto) resolved = train::resolve_amp(resolved.dtype, train::DeviceKind::kCpu, world);
  return amp::make_policy(train::amp_options(resolved.level, resolved.dtype));
}

}  // namespace

int eval(const std::string& program, const Arguments& args, const Recipes& recipes) {
  train::EvalCommand command(program, {recipes.begin(), recipes.end()});
  if (const auto help = command.read(args)) return print(*help), 0;
  const train::EvalOptions& options = command.options();
  const auto world = init();
  const checkpoint::Value root = checkpoint::read_pt(options.load);
  if (const auto origin = train::find_origin(root, options.load)) command.take_recorded(origin->options);
  const auto recipe = std::dynamic_pointer_cast<train::Recipe>(command.recipe());
  at::set_num_threads(options.processes.threads > 0 ? options.processes.threads
                                                    : parallel::default_threads(usable_cores(), world->size()));
  const auto data = recipe->open_data(options.data, 1);
  const auto model = recipe->make_model(1, *data.test);
  checkpoint::load_state_dict(*model.module, checkpoint::find_evaluated_state(root, options.load),
                              {.file = options.load, .convert_dtypes = true});
  const amp::Policy amp = policy_of(options.amp, *world);
  const train::Defaults defaults = recipe->defaults("");
  train::set_memory_format(*model.module, defaults.channels_last);
  amp::cast_models({model.module.get()}, amp);
  const auto result = train::evaluate(
      *recipe, model, *data.test, world->communicator(),
      {.chunk = options.batch_size.value_or(defaults.eval_batch), .channels_last = defaults.channels_last, .amp = amp});
  if (world->rank() != 0) return 0;
  if (options.json) {
    print(result.metrics.dump() + '\n');
  } else {
    std::string line = cat("loss ", result.loss);
    for (const auto& [name, value] : result.metrics.items()) line += cat(", ", name, ' ', value.dump());
    print(cat(line, " on ", result.samples, " test samples of ", data.test->description(), '\n'));
  }
  return 0;
}

}  // namespace lockstep::cli
