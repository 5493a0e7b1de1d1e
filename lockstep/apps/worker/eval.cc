#include <ATen/Parallel.h>

#include "commands.h"
#include "lockstep/base/env.h"
#include "lockstep/checkpoint/pt_reader.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/config/world.h"
#include "lockstep/recipes/registry.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/setup.h"

namespace lockstep::worker {

int run(const config::EvalOptions& options) {
  const auto recipe = recipes::find_recipe(options.recipe);
  const auto world = init();
  at::set_num_threads(options.threads > 0 ? options.threads : config::default_threads(usable_cores(), world->size()));
  const auto data = recipe->open_data(options.data, 1);
  const auto model = recipe->make_model(1, *data.test);
  const checkpoint::Value root = checkpoint::read_pt(options.load);
  checkpoint::load_state_dict(*model.module, checkpoint::find_evaluated_state(root, options.load),
                              {.file = options.load});
  const bool channels_last = recipe->defaults("").channels_last;
  train::set_memory_format(*model.module, channels_last);
  const auto result = train::evaluate(*recipe, model, *data.test, world->communicator(),
                                      {.chunk = options.batch_size.value_or(256),
                                       .channels_last = channels_last,
                                       .amp = train::policy_of(options.amp, config::HalfType::kBf16)});
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
