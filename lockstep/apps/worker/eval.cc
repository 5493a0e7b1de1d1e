#include <ATen/Parallel.h>

#include "commands.h"
#include "lockstep/amp/cast_model.h"
#include "lockstep/base/env.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/config/world.h"
#include "lockstep/recipes/registry.h"
#include "lockstep/train/auto_amp.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/training_state.h"

namespace lockstep::worker {
namespace {

// The checkpoint's own network and image size, where a run wrote it and the options don't say otherwise.
recipes::RecipeOptions network_of(const config::EvalOptions& options, const checkpoint::Value& root) {
  recipes::RecipeOptions network{.arch = options.arch, .size = options.size};
  const auto* const dict = root.get_if<checkpoint::Dict>();
  if (dict == nullptr || !dict->contains("meta") || !dict->contains("sampler")) return network;
  const train::Origin origin = train::read_state(root, options.load).origin;
  if (!network.arch && !origin.arch.empty()) {
    network.arch = static_cast<config::Arch>(config::read_word("arch", origin.arch, words(config::Arch{})));
  }
  if (!network.size && origin.sample_shape.size() == 3) network.size = static_cast<int>(origin.sample_shape[2]);
  return network;
}

// Auto is taken as it is fastest, not as the checkpoint's run had it: another machine may evaluate it.
amp::Policy policy_of(const config::EvalOptions& options, World& world) {
  train::SettledAmp settled{options.amp, config::HalfType::kBf16, ""};
  if (options.amp == config::AmpLevel::kAuto)
    settled = train::settle_amp(settled.dtype, config::DeviceKind::kCpu, world);
  return amp::make_policy(train::amp_options(settled.level, settled.dtype));
}

}  // namespace

int run(const config::EvalOptions& options) {
  const auto world = init();
  const checkpoint::Value root = checkpoint::read_pt(options.load);
  const auto recipe = recipes::find_recipe(options.recipe, network_of(options, root));
  at::set_num_threads(options.threads > 0 ? options.threads : config::default_threads(usable_cores(), world->size()));
  const auto data = recipe->open_data(options.data, 1);
  const auto model = recipe->make_model(1, *data.test);
  checkpoint::load_state_dict(*model.module, checkpoint::find_evaluated_state(root, options.load),
                              {.file = options.load, .convert_dtypes = true});
  const amp::Policy amp = policy_of(options, *world);
  const train::Defaults defaults = recipe->defaults("");
  train::set_memory_format(*model.module, defaults.channels_last);
  amp::apply_policy(*model.module, amp);
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

}  // namespace lockstep::worker
