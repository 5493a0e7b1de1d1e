#include "lockstep/checkpoint/state_dict.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/checkpoint/formats/dtype.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/name_prefix.h"

namespace lockstep::checkpoint {
namespace {

constexpr const char* kStateNames[] = {"model", "model_state_dict", "state_dict", "model_state", "network",
                                       "net",   "module",           "params"};
constexpr const char* kAverageNames[] = {"ema", "state_dict_ema", "model_ema"};
constexpr const char* kAverageCount = "n_averaged";  // a number among the tensors of PyTorch's AveragedModel

void collect(const torch::nn::Module& module, const std::string& prefix, NamedTensors& tensors) {
  for (const auto& own : {module.named_parameters(false), module.named_buffers(false)}) {
    for (const auto& item : own) {
      if (item.value().defined()) tensors.emplace_back(prefix + item.key(), item.value().detach());
    }
  }
  for (const auto& child : module.named_children()) collect(*child.value(), cat(prefix, child.key(), "."), tensors);
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

// Drops the wrappers' prefix from the names, and returns it.
std::string unwrap(NamedTensors& file, const NamedTensors& model) {
  NamedTensors kept;
  for (const auto& named : file) {
    if (named.first != kAverageCount) kept.push_back(named);
  }
  std::string prefix = wrappers_prefix(names_of(kept), names_of(model));
  if (prefix.empty()) return prefix;
  for (auto& [name, tensor] : kept) name = without_prefix(name, prefix);
  file = std::move(kept);
  return prefix;
}

NamedTensors named_tensors(const Dict& state, const std::string& file) {
  NamedTensors tensors;
  for (const auto& [key, value] : state) {
    if (value.get_if<Opaque>() != nullptr) continue;  // left out by ReadOptions::ignore_unknown
    const auto* tensor = value.get_if<at::Tensor>();
    if (tensor == nullptr) {
      throw DataError(file, ": ", printable(key_text(key)), ": expected a tensor, found ", value.kind());
    }
    tensors.emplace_back(key_text(key), *tensor);
  }
  return tensors;
}

std::string listed(at::IntArrayRef sizes) { return cat('[', c10::Join(", ", sizes), ']'); }

// The reason why a tensor of the file can't be copied into the model's; empty if there is none.
std::string difference(const std::string& name, const at::Tensor& file, const at::Tensor& model, bool convert) {
  if (file.sizes() != model.sizes()) {
    return cat(name, ": the file has ", listed(file.sizes()), ", the model ", listed(model.sizes()));
  }
  if (file.scalar_type() != model.scalar_type() && !convert) {
    return cat(name, ": the file has ", dtype_name(file.scalar_type()), ", the model ",
               dtype_name(model.scalar_type()));
  }
  return "";
}

// What does not fit, kind by kind.
struct Differences {
  std::vector<std::string> of_both, missing, unexpected;
};

// "2 tensors that differ, 3 that the file lacks"
std::string counts(const Differences& all) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& lines, const char* what) {
    if (!lines.empty()) text += cat(text.empty() ? "" : ", ", lines.size(), what);
  };
  add(all.of_both, all.of_both.size() == 1 ? " tensor that differs" : " tensors that differ");
  add(all.missing, " that the file lacks");
  add(all.unexpected, " that the model lacks");
  return text;
}

[[noreturn]] void refuse(const std::string& file, const Differences& all) {
  constexpr size_t kShown = 10;
  std::vector<std::string> lines = all.of_both;
  lines.insert(lines.end(), all.missing.begin(), all.missing.end());
  lines.insert(lines.end(), all.unexpected.begin(), all.unexpected.end());
  std::string line = lines.size() > 1 ? counts(all) + ": " : "";
  for (size_t i = 0; i < std::min(lines.size(), kShown); ++i) line += (i > 0 ? "; " : "") + lines[i];
  if (lines.size() > kShown) line += cat("; and ", lines.size() - kShown, " more");
  throw ConfigError(file, ": a checkpoint of another model: ", line);
}

struct Match {
  LoadReport report;
  Differences differences;                                // of tensors that both have, and in names
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // model's, file's
};

Match match(const NamedTensors& model, const NamedTensors& file, bool convert) {
  std::unordered_map<std::string, at::Tensor> left(file.begin(), file.end());
  Match match;
  for (const auto& [name, tensor] : model) {
    const auto found = left.find(name);
    if (found == left.end()) {
      match.report.missing.push_back(name);
      match.differences.missing.push_back(cat("the file lacks ", name, ' ', listed(tensor.sizes())));
      continue;
    }
    std::string text = difference(name, found->second, tensor, convert);
    if (!text.empty()) match.differences.of_both.push_back(std::move(text));
    match.copies.emplace_back(tensor, found->second);
    left.erase(found);
  }
  for (const auto& [name, tensor] : file) {
    if (!left.contains(name)) continue;
    match.report.unexpected.push_back(name);
    match.differences.unexpected.push_back(cat("the model lacks ", printable(name), ' ', listed(tensor.sizes())));
  }
  return match;
}

std::string joined(at::IntArrayRef sizes) { return c10::Join(",", sizes); }

// The match of a state dict that may be copied into the module.
Match fitting(const torch::nn::Module& module, const Dict& state, const LoadOptions& options) {
  const NamedTensors model = named_state(module);
  NamedTensors file = named_tensors(state, options.file);
  std::string prefix = unwrap(file, model);
  Match found = match(model, file, options.convert_dtypes);
  found.report.prefix = std::move(prefix);
  Differences& differences = found.differences;
  if (!options.strict) differences.missing.clear(), differences.unexpected.clear();
  const bool same_names = differences.missing.empty() && differences.unexpected.empty();
  if (found.copies.empty() && same_names) differences.of_both.emplace_back("no name is in both");
  if (!differences.of_both.empty() || !same_names) refuse(options.file, differences);
  return found;
}

}  // namespace

NamedTensors named_state(const torch::nn::Module& module) {
  NamedTensors tensors;
  collect(module, "", tensors);
  return tensors;
}

Dict state_dict(const torch::nn::Module& module) {
  Dict dict;
  for (auto& [name, tensor] : named_state(module)) dict.set(name, tensor);
  return dict;
}

LoadReport load_state_dict(torch::nn::Module& module, const Dict& state, const LoadOptions& options) {
  Match found = fitting(module, state, options);
  const at::NoGradGuard no_grad;
  copy_elements(found.copies);
  return std::move(found.report);
}

void check_state_dict(const torch::nn::Module& module, const Dict& state, const LoadOptions& options) {
  fitting(module, state, options);
}

FoundState find_state(const Value& root, const std::string& file) {
  const auto* dict = root.get_if<Dict>();
  if (dict == nullptr) throw DataError(file, ": holds ", root.kind(), ", not a model's state dict");
  const auto is_tensor = [](const auto& entry) { return entry.value.template get_if<at::Tensor>() != nullptr; };
  for (const char* name : kStateNames) {
    const Value* inner = dict->find(name);
    const Dict* state = inner == nullptr ? nullptr : inner->get_if<Dict>();
    if (state != nullptr && std::any_of(state->begin(), state->end(), is_tensor)) return {*state, name};
  }
  Dict tensors;
  for (const auto& entry : *dict) {
    if (is_tensor(entry)) tensors.set(entry.key, entry.value);
  }
  if (tensors.empty()) throw DataError(file, ": holds no model: neither tensors nor a \"model\" or \"state_dict\"");
  return {std::move(tensors), ""};
}

Dict find_model_state(const Value& root, const std::string& file) { return find_state(root, file).state; }

Dict find_evaluated_state(const Value& root, const std::string& file) {
  const auto* dict = root.get_if<Dict>();
  for (const char* name : kAverageNames) {
    const Value* average = dict == nullptr ? nullptr : dict->find(name);
    if (average != nullptr && average->get_if<Dict>() != nullptr) return *average->get_if<Dict>();
  }
  return find_model_state(root, file);
}

std::string weights_sha256(NamedTensors tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  constexpr std::string_view kNul("\0", 1);
  Sha256 hash;
  for (const auto& [name, tensor] : tensors) {
    hash.update(cat(name, kNul, dtype_name(tensor.scalar_type()), kNul, joined(tensor.sizes()), kNul));
    const at::Tensor dense = tensor.detach().cpu().contiguous();
    hash.update(dense.const_data_ptr(), dense.nbytes());
  }
  return hash.hex();
}

std::string weights_sha256(const torch::nn::Module& module) { return weights_sha256(named_state(module)); }

}  // namespace lockstep::checkpoint
