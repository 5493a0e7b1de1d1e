#include "lockstep/checkpoint/paddle_names.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kCounter = "num_batches_tracked";

struct Pair {
  std::string_view paddle, torch;
};
constexpr Pair kStatistics[] = {{"_mean", "running_mean"}, {"_variance", "running_var"}};

// The name without the last of its words, "layer1.0.bn1." of "layer1.0.bn1._mean", and that word.
std::pair<std::string, std::string_view> split(const std::string& name) {
  const size_t dot = name.rfind('.');
  const size_t begin = dot == std::string::npos ? 0 : dot + 1;
  return {name.substr(0, begin), std::string_view(name).substr(begin)};
}

std::string renamed(const std::string& name, std::string_view Pair::*from, std::string_view Pair::*to) {
  const auto [layer, last] = split(name);
  for (const Pair& pair : kStatistics) {
    if (last == pair.*from) return layer + std::string(pair.*to);
  }
  return name;
}

Value transposed(const Value& value, const std::string& name, const std::string& file) {
  const auto* tensor = value.get_if<at::Tensor>();
  if (tensor == nullptr || tensor->dim() != 2) {
    throw DataError(file, ": ", printable(name), ": the weight of a Linear layer is ",
                    tensor == nullptr ? std::string(value.kind()) : cat("a tensor of ", tensor->dim(), " dimensions"));
  }
  return tensor->t();
}

void collect(const torch::nn::Module& module, const std::string& prefix, std::set<std::string>& names) {
  if (module.as<torch::nn::Linear>() != nullptr) names.insert(prefix + "weight");
  for (const auto& child : module.named_children()) collect(*child.value(), cat(prefix, child.key(), "."), names);
}

}  // namespace

std::set<std::string> linear_weights(const torch::nn::Module& module) {
  std::set<std::string> names;
  collect(module, "", names);
  return names;
}

std::set<std::string> likely_linear_weights(const Dict& state) {
  const Value* table = state.find(std::string(kPaddleNames));
  const Dict* own_names = table == nullptr ? nullptr : table->get_if<Dict>();
  std::set<std::string> names;
  for (const auto& [key, value] : state) {
    const std::string name = key_text(key);
    const auto [layer, last] = split(name);
    const auto* weight = value.get_if<at::Tensor>();
    if (last != "weight" || weight == nullptr || weight->dim() != 2) continue;
    const Value* own = own_names == nullptr ? nullptr : own_names->find(key);
    const auto* own_name = own == nullptr ? nullptr : own->get_if<std::string>();
    const auto calls_it = [&](const char* kind) {
      return own_name != nullptr && own_name->find(kind) != own_name->npos;
    };
    if (calls_it("embedding")) continue;
    const Value* beside = state.find(layer + "bias");
    const auto* bias = beside == nullptr ? nullptr : beside->get_if<at::Tensor>();
    const bool has_bias =
        bias != nullptr && bias->dim() == 1 && (bias->size(0) == weight->size(0) || bias->size(0) == weight->size(1));
    if (calls_it("linear") || has_bias) names.insert(name);
  }
  return names;
}

bool is_paddle_statistic(const std::string& name) {
  return std::ranges::find(kStatistics, split(name).second, &Pair::paddle) != std::end(kStatistics);
}

Dict from_paddle(const Dict& state, const std::set<std::string>& linear, const std::string& file) {
  Dict result;
  for (const auto& [key, value] : state) {
    const std::string name = renamed(key_text(key), &Pair::paddle, &Pair::torch);
    if (name == kPaddleNames) continue;
    result.set(name, linear.contains(name) ? transposed(value, name, file) : value);
  }
  return result;
}

Dict from_paddle(const Dict& state, const torch::nn::Module& module, const std::string& file) {
  Dict result = from_paddle(state, linear_weights(module), file);
  for (const auto& buffer : module.named_buffers()) {
    const std::string& name = buffer.key();
    if (split(name).second != kCounter || result.contains(name)) continue;
    if (result.contains(split(name).first + "running_mean")) result.set(name, at::zeros({}, at::kLong));
  }
  return result;
}

Dict to_paddle(const Dict& state, const std::set<std::string>& linear, const std::string& file) {
  Dict result;
  for (const auto& [key, value] : state) {
    const std::string name = key_text(key);
    if (split(name).second == kCounter) continue;
    result.set(renamed(name, &Pair::torch, &Pair::paddle),
               linear.contains(name) ? transposed(value, name, file) : value);
  }
  return result;
}

}  // namespace lockstep::checkpoint
