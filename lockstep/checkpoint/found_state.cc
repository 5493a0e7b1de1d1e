#include "lockstep/checkpoint/found_state.h"

#include <ATen/core/Tensor.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <array>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::array kAverageNames = {"ema", "state_dict_ema", "model_ema"};
constexpr std::array kModelNames = {"model", "model_state_dict", "state_dict", "model_state", "network",
                                    "net",   "module",           "params"};

// The state dict under the name; nullptr if there is none.
const Dict* state_under(const Dict& root, const std::string& name) {
  const Value* inner = root.find(name);
  const Dict* state = inner == nullptr ? nullptr : inner->get_if<Dict>();
  const auto is_tensor = [](const Dict::Entry& entry) { return entry.value.is_tensor(); };
  return state != nullptr && std::any_of(state->begin(), state->end(), is_tensor) ? state : nullptr;
}

// Those of the names under which the root has a state dict.
template <typename Names>
std::vector<std::string> names_in(const Dict& root, const Names& names) {
  std::vector<std::string> there(names.begin(), names.end());
  std::erase_if(there, [&](const std::string& name) { return state_under(root, name) == nullptr; });
  return there;
}

// An average of another form than a state dict must not be passed over in silence.
void refuse_other_averages(const Value& root, const std::string& file) {
  const auto* dict = root.get_if<Dict>();
  for (const char* name : kAverageNames) {
    const Value* average = dict == nullptr ? nullptr : dict->find(std::string(name));
    const Dict* held = average == nullptr ? nullptr : average->get_if<Dict>();
    if (held == nullptr || held->empty() || state_under(*dict, name) != nullptr) continue;
    throw DataError(file, ": ", name, ": expected the weights' average, a dict of tensors; it holds other values");
  }
}

}  // namespace

Dict tensors_of(const Dict& dict) {
  Dict tensors;
  for (const auto& entry : dict) {
    if (entry.value.is_tensor()) tensors.set(entry.key, entry.value);
  }
  return tensors;
}

std::optional<FoundState> search_state(const Value& root, Average average) {
  const auto* dict = root.get_if<Dict>();
  if (dict == nullptr) return std::nullopt;
  const std::vector<std::string> models = names_in(*dict, kModelNames), averages = names_in(*dict, kAverageNames);
  FoundState found;
  if (average != Average::kOff && !averages.empty()) {
    found.name = averages.front();
  } else if (average == Average::kOn) {
    return std::nullopt;
  } else if (!models.empty()) {
    found.name = models.front();
  }
  found.state = found.name.empty() ? tensors_of(*dict) : *state_under(*dict, found.name);
  if (found.state.empty()) return std::nullopt;
  for (const auto& names : {models, averages}) found.others.insert(found.others.end(), names.begin(), names.end());
  std::erase(found.others, found.name);
  return found;
}

FoundState find_state(const Value& root, const std::string& file, Average average) {
  if (average != Average::kOff) refuse_other_averages(root, file);
  if (auto found = search_state(root, average)) return *std::move(found);
  if (average == Average::kOn && search_state(root)) {
    throw ConfigError(file, ": has no average of the weights (", c10::Join(", ", kAverageNames),
                      "); leave the option out that asks for it");
  }
  if (const auto other = search_state(root, Average::kWhereThere)) {
    throw ConfigError(file, ": holds an average of the weights alone, ", other->name,
                      ", which --load-average on and --average take");
  }
  if (root.get_if<Dict>() == nullptr) throw DataError(file, ": holds ", root.kind(), ", not a model's state dict");
  throw DataError(file, ": holds no model: neither tensors nor a \"model\" or \"state_dict\"");
}

Dict find_model_state(const Value& root, const std::string& file, Average average) {
  return tensors_of(find_state(root, file, average).state);
}

}  // namespace lockstep::checkpoint
