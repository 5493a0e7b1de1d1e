#include "lockstep/checkpoint/load_model.h"

#include <set>
#include <utility>

#include "lockstep/checkpoint/found_state.h"
#include "lockstep/checkpoint/name_prefix.h"
#include "lockstep/checkpoint/paddle_names.h"

namespace lockstep::checkpoint {

ChosenState choose_state(const Value& root, const LoadModelOptions& options) {
  FoundState found = find_state(root, options.file, options.average);
  StrippedState stripped = without_prefix(tensors_of(found.state), options.strip_prefix, options.file);
  return {std::move(stripped.state), std::move(found.name), std::move(found.others), std::move(stripped.left_out)};
}

LoadedModel load_model(torch::nn::Module& module, const Value& root, const LoadModelOptions& options) {
  return load_model(module, choose_state(root, options), options);
}

LoadedModel load_model(torch::nn::Module& module, ChosenState chosen, const LoadModelOptions& options) {
  // Names first, for Paddle's layouts are told by the module's.
  if (options.paddle) chosen.state = from_paddle(chosen.state, module, options.file);
  LoadedModel loaded;
  loaded.report = load_state_dict(
      module, chosen.state,
      {.file = options.file, .strict = options.strict, .partly = options.partly, .convert_dtypes = true});
  const std::set<std::string> names(loaded.report.loaded.begin(), loaded.report.loaded.end());
  for (const auto& [key, value] : chosen.state) {
    const std::string name = without_prefix(key_text(key), loaded.report.prefix);
    if (names.contains(name)) loaded.state.set(name, value);
  }
  loaded.report.prefix = options.strip_prefix + loaded.report.prefix;
  loaded.report.name = std::move(chosen.name);
  loaded.report.others = std::move(chosen.others);
  loaded.report.left_out = std::move(chosen.left_out);
  return loaded;
}

}  // namespace lockstep::checkpoint
