#include "lockstep/loop/optimizer_values.h"

#include <ATen/ops/scalar_tensor.h>

#include "lockstep/base/error.h"

namespace lockstep::loop {
namespace {

using checkpoint::Dict;
using checkpoint::Tuple;
using checkpoint::Value;
using optim::OptionValue;

Value to_value(const OptionValue& option) {
  const auto convert = [](const auto& value) -> Value {
    using Type = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Type, std::pair<double, double>>) {
      return Value(Tuple{{value.first, value.second}});
    } else if constexpr (std::is_same_v<Type, std::monostate>) {
      return Value();
    } else {
      return Value(value);
    }
  };
  return std::visit(convert, option);
}

OptionValue to_option(const Value& value, const std::string& where) {
  if (value.is_none()) return std::monostate();
  if (const auto* boolean = value.get_if<bool>()) return *boolean;
  if (const auto* integer = value.get_if<int64_t>()) return *integer;
  if (const auto* number = value.get_if<double>()) return *number;
  if (const auto* text = value.get_if<std::string>()) return *text;
  const auto* items = value.items();
  if (items != nullptr && items->size() == 2 && (*items)[0].get_if<double>() && (*items)[1].get_if<double>()) {
    return std::pair(*(*items)[0].get_if<double>(), *(*items)[1].get_if<double>());
  }
  if (const auto* tensor = value.get_if<at::Tensor>(); tensor != nullptr && tensor->numel() == 1) {  // capturable's lr
    checkpoint::bring_into_memory(*tensor);
    return tensor->item<double>();
  }
  throw DataError(where, ": ", value.kind(), " is no option of an optimizer");
}

// A tensor; a number where PyTorch before 1.12 counted steps by one. Undefined for None.
at::Tensor to_tensor(const Value& value, const std::string& where) {
  if (value.is_none()) return {};
  if (const auto* integer = value.get_if<int64_t>()) return at::scalar_tensor(*integer, at::kFloat);
  if (const auto* number = value.get_if<double>()) return at::scalar_tensor(*number, at::kFloat);
  const auto* tensor = value.get_if<at::Tensor>();
  if (tensor == nullptr) throw DataError(where, ": expected a tensor, found ", value.kind());
  if (tensor->numel() == 1) checkpoint::bring_into_memory(*tensor);
  return *tensor;
}

}  // namespace

checkpoint::OptimizerState to_values(const optim::OptimizerState& state) {
  checkpoint::OptimizerState values;
  size_t parameters = 0;
  for (const auto& group : state.groups) {
    Dict options;
    for (const auto& [name, value] : group.options) options.set(name, to_value(value));
    values.groups.push_back({std::move(options), group.parameters.size()});
    parameters += group.parameters.size();
  }
  values.parameters.resize(parameters);
  for (const auto& parameter : state.parameters) {
    for (const auto& [name, tensor] : parameter.tensors) {
      values.parameters.at(static_cast<size_t>(parameter.index)).set(name, tensor.defined() ? Value(tensor) : Value());
    }
  }
  return values;
}

optim::OptimizerState from_values(const checkpoint::OptimizerState& values, const std::string& file,
                                  optim::CopyElements copy) {
  optim::OptimizerState state;
  state.copy = copy;
  int64_t first = 0;
  for (const auto& group : values.groups) {
    optim::GroupState read;
    for (const auto& [key, value] : group.options) {
      const std::string name = checkpoint::key_text(key);
      if (name == "param_names") continue;  // of named parameters, for people
      read.options.push_back({name, to_option(value, lockstep::cat(file, ": optimizer option ", name))});
    }
    for (size_t i = 0; i < group.parameters; ++i) read.parameters.push_back(first++);
    state.groups.push_back(std::move(read));
  }
  for (size_t i = 0; i < values.parameters.size(); ++i) {
    if (values.parameters[i].empty()) continue;
    optim::ParameterState read{.index = static_cast<int64_t>(i), .tensors = {}};
    for (const auto& [key, value] : values.parameters[i]) {
      const std::string name = checkpoint::key_text(key);
      read.tensors.push_back({name, to_tensor(value, lockstep::cat(file, ": optimizer/state/", i, '/', name))});
    }
    state.parameters.push_back(std::move(read));
  }
  return state;
}

}  // namespace lockstep::loop
