#include "lockstep/checkpoint/state_dict.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/checkpoint/formats/dtype.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kWrapperPrefix = "module.";

void collect(const torch::nn::Module& module, const std::string& prefix, NamedTensors& tensors) {
  for (const auto& own : {module.named_parameters(false), module.named_buffers(false)}) {
    for (const auto& item : own) {
      if (item.value().defined()) tensors.emplace_back(prefix + item.key(), item.value().detach());
    }
  }
  for (const auto& child : module.named_children()) collect(*child.value(), cat(prefix, child.key(), "."), tensors);
}

bool is_wrapped(const std::string& name) { return name.starts_with(kWrapperPrefix); }

// The dict's tensors by name. The wrapper's prefix is dropped if all of them have it and none of the model's has.
NamedTensors named_tensors(const Dict& state, const NamedTensors& model, const std::string& file) {
  const bool drop = !state.empty() && std::all_of(state.begin(), state.end(), [](const auto& e) {
    return is_wrapped(key_text(e.key));
  }) && std::none_of(model.begin(), model.end(), [](const auto& named) { return is_wrapped(named.first); });
  NamedTensors tensors;
  for (const auto& [key, value] : state) {
    std::string name = key_text(key).substr(drop ? kWrapperPrefix.size() : 0);
    const auto* tensor = value.get_if<at::Tensor>();
    if (tensor == nullptr) throw DataError(file, ": ", printable(name), ": expected a tensor, found ", value.kind());
    tensors.emplace_back(std::move(name), *tensor);
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

void add_names(const char* what, const std::vector<std::string>& names, std::vector<std::string>& differences) {
  for (const std::string& name : names) differences.push_back(cat(what, printable(name)));
}

[[noreturn]] void refuse(const std::string& file, const std::vector<std::string>& differences) {
  constexpr size_t kShown = 3;
  std::string line;
  for (size_t i = 0; i < std::min(differences.size(), kShown); ++i) line += (i > 0 ? "; " : "") + differences[i];
  if (differences.size() > kShown) line += cat("; and ", differences.size() - kShown, " more");
  throw ConfigError(file, ": a checkpoint of another model: ", line);
}

struct Match {
  LoadReport report;
  std::vector<std::string> differences;                   // of tensors that both have
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // model's, file's
};

Match match(const NamedTensors& model, const NamedTensors& file, bool convert) {
  std::unordered_map<std::string, at::Tensor> left(file.begin(), file.end());
  Match match;
  for (const auto& [name, tensor] : model) {
    const auto found = left.find(name);
    if (found == left.end()) {
      match.report.missing.push_back(name);
      continue;
    }
    std::string text = difference(name, found->second, tensor, convert);
    if (!text.empty()) match.differences.push_back(std::move(text));
    match.copies.emplace_back(tensor, found->second);
    left.erase(found);
  }
  for (const auto& [name, tensor] : file) {
    if (left.contains(name)) match.report.unexpected.push_back(name);
  }
  return match;
}

std::string joined(at::IntArrayRef sizes) { return c10::Join(",", sizes); }

// The match of a state dict that may be copied into the module.
Match fitting(const torch::nn::Module& module, const Dict& state, const LoadOptions& options) {
  const NamedTensors model = named_state(module);
  Match found = match(model, named_tensors(state, model, options.file), options.convert_dtypes);
  if (options.strict) {
    add_names("the file lacks ", found.report.missing, found.differences);
    add_names("the model lacks ", found.report.unexpected, found.differences);
  }
  if (found.differences.empty() && found.copies.empty()) found.differences.push_back("no name is in both");
  if (!found.differences.empty()) refuse(options.file, found.differences);
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
  for (auto& [to, from] : found.copies) to.copy_(from);
  return std::move(found.report);
}

void check_state_dict(const torch::nn::Module& module, const Dict& state, const LoadOptions& options) {
  fitting(module, state, options);
}

Dict find_model_state(const Value& root, const std::string& file) {
  const auto* dict = root.get_if<Dict>();
  if (dict == nullptr) throw DataError(file, ": holds ", root.kind(), ", not a model's state dict");
  for (const char* name : {"model", "model_state_dict", "state_dict"}) {
    const Value* inner = dict->find(name);
    if (inner != nullptr && inner->get_if<Dict>() != nullptr) return *inner->get_if<Dict>();
  }
  Dict tensors;
  for (const auto& [key, value] : *dict) {
    if (value.get_if<at::Tensor>() != nullptr) tensors.set(key, value);
  }
  if (tensors.empty()) throw DataError(file, ": holds no model: neither tensors nor a \"model\" or \"state_dict\"");
  return tensors;
}

Dict find_evaluated_state(const Value& root, const std::string& file) {
  const auto* dict = root.get_if<Dict>();
  const Value* average = dict == nullptr ? nullptr : dict->find("ema");
  const bool there = average != nullptr && average->get_if<Dict>() != nullptr;
  return there ? *average->get_if<Dict>() : find_model_state(root, file);
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
