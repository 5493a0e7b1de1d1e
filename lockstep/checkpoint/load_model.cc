#include "lockstep/checkpoint/load_model.h"

#include <utility>

#include "lockstep/checkpoint/name_prefix.h"
#include "lockstep/checkpoint/paddle_names.h"

namespace lockstep::checkpoint {

LoadedModel load_model(torch::nn::Module& module, const Value& root, const LoadModelOptions& options) {
  Dict state = options.average ? find_evaluated_state(root, options.file) : find_model_state(root, options.file);
  // First, for Paddle's layouts are told by the module's names.
  if (!options.strip_prefix.empty()) state = without_prefix(state, options.strip_prefix, options.file);
  if (options.paddle) state = from_paddle(state, module, options.file);
  LoadedModel loaded;
  loaded.report =
      load_state_dict(module, state, {.file = options.file, .strict = options.strict, .convert_dtypes = true});
  for (const auto& [key, value] : state) loaded.state.set(without_prefix(key_text(key), loaded.report.prefix), value);
  loaded.report.prefix = options.strip_prefix + loaded.report.prefix;
  return loaded;
}

}  // namespace lockstep::checkpoint
