#include "lockstep/checkpoint/state_dict.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/checkpoint/formats/dtype.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/name_prefix.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kCounter = "num_batches_tracked";  // of a BatchNorm

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
  std::string prefix = wrappers_prefix(names_of(file), names_of(model));
  if (prefix.empty()) return prefix;
  std::erase_if(file, [](const auto& named) { return named.first == kAverageCount; });
  for (auto& [name, tensor] : file) name = without_prefix(name, prefix);
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
  // libtorch's Module::to(dtype) casts a BatchNorm's counter, too; PyTorch's does not.
  if (name.ends_with(kCounter) && !file.is_complex()) return "";
  // Of complex numbers a part would be dropped, and whole numbers in place of weights are quantized ones.
  const bool of_another_kind =
      (file.is_complex() && !model.is_complex()) ||
      (at::isIntegralType(file.scalar_type(), /*includeBool=*/true) && model.is_floating_point());
  if (file.scalar_type() != model.scalar_type() && (!convert || of_another_kind)) {
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

std::vector<std::string> lines_of(const Differences& all) {
  std::vector<std::string> lines = all.of_both;
  lines.insert(lines.end(), all.missing.begin(), all.missing.end());
  lines.insert(lines.end(), all.unexpected.begin(), all.unexpected.end());
  return lines;
}

[[noreturn]] void refuse(const std::string& file, const Differences& all, const std::string& advice) {
  constexpr size_t kShown = 10;
  const std::vector<std::string> lines = lines_of(all);
  std::string line = lines.size() > 1 ? counts(all) + ": " : "";
  for (size_t i = 0; i < std::min(lines.size(), kShown); ++i) line += (i > 0 ? "; " : "") + lines[i];
  if (lines.size() > kShown) line += cat("; and ", lines.size() - kShown, " more");
  throw ConfigError(file, ": a checkpoint of another model: ", line, advice);
}

struct Match {
  LoadReport report;
  Differences differences;                                // of tensors that both have, and in names
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // model's, file's
};

// Whether it is a BatchNorm's counter, and the file has the statistics beside it.
bool is_uncounted(const std::string& name, const std::unordered_map<std::string, at::Tensor>& file) {
  return name.ends_with(kCounter) && file.contains(name.substr(0, name.size() - kCounter.size()) + "running_mean");
}

Match match(const NamedTensors& model, const NamedTensors& file, bool convert) {
  const std::unordered_map<std::string, at::Tensor> all(file.begin(), file.end());
  std::unordered_map<std::string, at::Tensor> left = all;
  Match match;
  for (const auto& [name, tensor] : model) {
    const auto found = left.find(name);
    if (found == left.end() && is_uncounted(name, all)) {
      match.report.uncounted.push_back(name);
      continue;
    }
    if (found == left.end()) {
      match.report.missing.push_back(name);
      match.differences.missing.push_back(cat("the file lacks ", name, ' ', listed(tensor.sizes())));
      continue;
    }
    std::string text = difference(name, found->second, tensor, convert);
    if (text.empty()) {
      match.copies.emplace_back(tensor, found->second);
      match.report.loaded.push_back(name);
    } else {
      match.differences.of_both.push_back(std::move(text));
    }
    left.erase(found);
  }
  for (const auto& [name, tensor] : file) {
    if (!left.contains(name)) continue;
    match.report.unexpected.push_back(name);
    match.differences.unexpected.push_back(cat("the model lacks ", printable(name), ' ', listed(tensor.sizes())));
  }
  return match;
}

// Of a BatchNorm whose statistics don't fit, the counter is not loaded, either.
void leave_lone_counters(Match& match) {
  const std::set<std::string> loaded(match.report.loaded.begin(), match.report.loaded.end());
  Match kept;
  for (size_t i = 0; i < match.copies.size(); ++i) {
    const std::string& name = match.report.loaded[i];
    const bool is_counter = name.ends_with(kCounter);
    if (is_counter && !loaded.contains(name.substr(0, name.size() - kCounter.size()) + "running_mean")) continue;
    kept.copies.push_back(match.copies[i]);
    kept.report.loaded.push_back(name);
  }
  match.copies = std::move(kept.copies);
  match.report.loaded = std::move(kept.report.loaded);
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
  if (options.partly) leave_lone_counters(found);
  const bool has_weights = std::ranges::any_of(found.copies, [](const auto& copy) { return copy.first.dim() > 1; });
  if (options.partly && has_weights) {
    found.report.unfit = lines_of(differences);
    return found;
  }
  if (!options.strict) differences.missing.clear(), differences.unexpected.clear();
  const bool same_names = differences.missing.empty() && differences.unexpected.empty();
  if (found.copies.empty() && same_names) differences.of_both.emplace_back("no name is in both");
  if (differences.of_both.empty() && same_names) return found;
  const std::string prefix_of_all = prefix_before(found.report.missing, found.report.unexpected);
  const std::string shown = printable(prefix_of_all);
  refuse(options.file, differences,
         prefix_of_all.empty() ? ""
                               : cat("; the file has them all as ", shown, printable(found.report.missing[0]),
                                     " and so on: strip the prefix (--strip-prefix ", shown, ')'));
}

}  // namespace

std::string LoadReport::text() const {
  constexpr size_t kShown = 10;
  std::string told;
  const auto add = [&told](const std::string& part) {
    if (!part.empty()) told += cat(told.empty() ? "" : "; ", part);
  };
  if (!others.empty()) add(cat(name.empty() ? "its own tensors" : name, ", not ", c10::Join(", ", others)));
  add(prefix_text(prefix, left_out.size()));
  if (!uncounted.empty()) add(cat(uncounted.size(), " num_batches_tracked that it lacks stay as they are"));
  if (!unfit.empty()) {
    add(cat(loaded.size(), " tensors that fit; ", unfit.size(),
            " do not: ", first_few(unfit, kShown, std::identity())));
  }
  return told;
}

NamedTensors named_state(const torch::nn::Module& module) {
  NamedTensors tensors;
  collect(module, "", tensors);
  return tensors;
}

NamedTensors named_for(const torch::nn::Module& module, const Dict& state, const std::string& file) {
  NamedTensors tensors = named_tensors(state, file);
  unwrap(tensors, named_state(module));
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
