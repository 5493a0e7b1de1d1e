#include "lockstep/checkpoint/conversion.h"

#include <algorithm>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/safetensors_header.h"
#include "lockstep/checkpoint/found_state.h"
#include "lockstep/checkpoint/name_prefix.h"
#include "lockstep/checkpoint/paddle_names.h"
#include "lockstep/checkpoint/paddle_optimizer.h"

namespace lockstep::checkpoint {
namespace {

// "optimizer, epoch and 3 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += cat(i == 0 ? "" : ", ", printable(names[i]));
  return names.size() > kShown ? cat(text, " and ", names.size() - kShown, " more") : text;
}

// The state dict's tensors. What is left out is noted: values in it, and what lies beside it.
Dict weights_of(const Dict& root, const FoundState& found, std::vector<std::string>& notes) {
  Dict weights;
  std::vector<std::string> left;
  for (const auto& entry : found.state) {
    if (entry.value.is_tensor()) {
      weights.set(entry.key, entry.value);
    } else {
      left.push_back(cat(found.name, '/', key_text(entry.key)));
    }
  }
  if (!found.name.empty()) notes.push_back(cat("took the state dict under ", found.name));
  for (const auto& entry : root) {
    const std::string name = key_text(entry.key);
    const bool taken = found.name.empty() ? entry.value.is_tensor() || name == kMetadata : name == found.name;
    if (!taken) left.push_back(name);
  }
  if (!left.empty()) notes.push_back("left out: " + listed(left));
  if (const auto average = search_state(root, Average::kOn); average && average->name != found.name) {
    notes.push_back(cat(printable(average->name), " is an average of the weights, which --average takes"));
  }
  return weights;
}

// In the names and layouts of the other library. What is done to the weights is noted, for a state dict alone does not
// tell a Linear layer for sure.
Dict renamed(const Dict& state, const std::set<std::string>& linear, const ConvertOptions& options,
             std::vector<std::string>& notes) {
  if (options.from_paddle == options.to_paddle) return state;
  notes.push_back(cat(options.from_paddle ? "from Paddle's names and layouts" : "in Paddle's names and layouts", "; ",
                      linear.size(),
                      " weights of Linear layers, by Paddle's names or a bias beside them, are transposed"));
  std::vector<std::string> others;
  for (const auto& [key, value] : state) {
    const auto* tensor = value.get_if<at::Tensor>();
    if (tensor != nullptr && tensor->dim() == 2 && !linear.contains(key_text(key))) others.push_back(key_text(key));
  }
  if (!others.empty()) notes.push_back("two-dimensional as well, and not transposed: " + listed(others));
  return options.from_paddle ? from_paddle(state, linear, options.file) : to_paddle(state, linear, options.file);
}

Dict stripped(const Dict& state, const ConvertOptions& options, std::vector<std::string>& notes) {
  std::vector<std::string> names;
  for (const auto& entry : state) {
    if (entry.value.is_tensor()) names.push_back(key_text(entry.key));
  }
  if (options.strip_prefix.empty()) {
    const std::string prefix = wrappers_prefix(names, {});
    if (!prefix.empty())
      notes.push_back(cat("all names begin with ", prefix, "; --strip-prefix ", prefix, " drops it"));
    return state;
  }
  StrippedState result = without_prefix(tensors_of(state), options.strip_prefix, options.file);
  notes.push_back(cat("dropped ", printable(options.strip_prefix), " from ", result.state.size(), " names",
                      result.left_out.empty() ? "" : cat("; left out: ", listed(result.left_out))));
  for (const auto& entry : state) {
    if (!entry.value.is_tensor()) result.state.set(entry.key, entry.value);
  }
  return std::move(result.state);
}

const Dict& dict_in(const Value& root, const std::string& file) {
  const Dict* dict = root.get_if<Dict>();
  if (dict == nullptr) throw DataError(file, ": expected a dict, found ", root.kind());
  return *dict;
}

// What lies beside the state dict, an optimizer's state or an average, goes by all of its names.
void refuse_half_stripped(const FoundState& found, const ConvertOptions& options) {
  if (options.strip_prefix.empty()) return;
  const size_t outside = without_prefix(tensors_of(found.state), options.strip_prefix, options.file).left_out.size();
  if (outside == 0 && found.others.empty()) return;
  throw ConfigError(options.file, ": holds more than the weights under ", printable(found.name),
                    ", which goes by their names; ", "--strip-prefix needs --weights beside it here");
}

Dict without_metadata(const Dict& all) {
  Dict state;
  for (const auto& [key, value] : all) {
    if (key_text(key) != kMetadata) state.set(key, value);
  }
  return state;
}

// The state dict of a .pdparams, which is all of it.
const Dict& params_in(const Value& root, const std::string& file) {
  const Dict& dict = dict_in(root, file);
  const bool has_weights = std::ranges::any_of(dict, [](const auto& entry) { return entry.value.is_tensor(); });
  if (!has_weights) throw DataError(file, ": expected a model's state_dict() as paddle.save writes it");
  return dict;
}

}  // namespace

Converted convert(const Value& root, const ConvertOptions& options) {
  if (const auto* all = root.get_if<Dict>(); options.from_paddle && all != nullptr && is_paddle_optimizer(*all)) {
    throw DataError(options.file, ": is an optimizer's state; give it as --optimizer beside its .pdparams");
  }
  const bool takes_all =
      !options.weights_alone && !options.from_paddle && !options.to_paddle && options.strip_prefix.empty();
  if (takes_all && !search_state(root)) {
    return {without_metadata(dict_in(root, options.file)),
            {"it holds no model that is known as one; all is kept as it is"}};
  }
  const FoundState found = find_state(root, options.file, options.average ? Average::kOn : Average::kOff);
  const Dict& all = *root.get_if<Dict>();
  std::set<std::string> linear;
  for (const std::string& name : likely_linear_weights(found.name.empty() ? all : found.state)) {
    if (name.starts_with(options.strip_prefix)) linear.insert(without_prefix(name, options.strip_prefix));
  }
  Converted converted;
  if (options.weights_alone) {
    const Dict weights = stripped(weights_of(all, found, converted.notes), options, converted.notes);
    converted.value = renamed(weights, linear, options, converted.notes);
    const Value* metadata = all.find(std::string(kMetadata));
    if (metadata != nullptr && found.name.empty()) converted.value.set(std::string(kMetadata), *metadata);
    return converted;
  }
  if (!found.name.empty()) {
    refuse_half_stripped(found, options);
    converted.value = all;
    converted.value.set(found.name,
                        renamed(stripped(found.state, options, converted.notes), linear, options, converted.notes));
    return converted;
  }
  const Dict state = without_metadata(all);
  if (state.size() != all.size()) converted.notes.push_back(cat("left out: ", kMetadata));
  converted.value = renamed(stripped(state, options, converted.notes), linear, options, converted.notes);
  return converted;
}

Converted from_paddle_files(const Value& params, const Value& optimizer, const PaddleFiles& files,
                            std::pair<double, double> betas) {
  const Dict& state = params_in(params, files.params);
  const Dict& moments = dict_in(optimizer, files.optimizer);
  const auto linear = likely_linear_weights(state);
  const auto parameters = paddle_parameters(state, linear, files.params);
  PaddleOptimizer converted = optimizer_from_paddle(moments, parameters, betas, files.optimizer);
  Converted result;
  const ConvertOptions options{.file = files.params, .from_paddle = true};
  Dict model = renamed(state, linear, options, result.notes);
  const Dict masters = masters_from_paddle(moments, parameters, files.optimizer);
  for (const auto& [name, master] : masters) model.set(name, master);
  if (!masters.empty()) result.notes.push_back(cat("weights: the fp32 masters of ", files.optimizer));
  result.notes.insert(result.notes.end(), converted.notes.begin(), converted.notes.end());
  result.value = {{"model", std::move(model)}, {"optimizer", std::move(converted.state)}};
  return result;
}

Converted to_paddle_optimizer(const Value& root, const std::string& file, const Value& names,
                              const std::string& file_of_names) {
  const Dict& all = dict_in(root, file);
  const Value* optimizer = nullptr;
  std::string place;
  for (const char* name : {"optimizer", "optimizer_state_dict", "optim"}) {
    const Value* found = all.find(std::string(name));
    const bool is_it = found != nullptr && found->get_if<Dict>() != nullptr;
    if (is_it && optimizer == nullptr) optimizer = found, place = cat(file, ": ", name);
  }
  if (optimizer == nullptr && all.contains("param_groups")) optimizer = &root, place = file;
  if (optimizer == nullptr) throw DataError(file, ": holds no optimizer's state (optimizer, optimizer_state_dict)");
  const Dict& state = params_in(names, file_of_names);
  const auto parameters = paddle_parameters(state, likely_linear_weights(state), file_of_names);
  if (std::ranges::all_of(parameters, [](const PaddleParameter& each) { return each.paddle == each.name; })) {
    throw DataError(file_of_names,
                    ": has no names of Paddle's; give a file that paddle.save has written of the network");
  }
  PaddleOptimizer converted = optimizer_to_paddle(*optimizer, parameters, place);
  Converted result{std::move(converted.state), std::move(converted.notes)};
  result.notes.push_back(cat("with the parameters' names of ", file_of_names));
  result.notes.emplace_back(
      "a scheduler's position is not in it: in Paddle, set state[\"LR_Scheduler\"] to the "
      "scheduler's own");
  return result;
}

}  // namespace lockstep::checkpoint
