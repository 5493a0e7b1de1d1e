// An optimizer's state in PyTorch's form, as plain data: the content of torch.optim.Optimizer.state_dict().
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::optim {

// An option's value: Python's None, bool, int, float, str, or a pair of floats (Adam's betas).
using OptionValue = std::variant<std::monostate, bool, int64_t, double, std::string, std::pair<double, double>>;

struct NamedOption {
  std::string name;
  OptionValue value;
};
using NamedOptions = std::vector<NamedOption>;

struct NamedTensor {
  std::string name;  // "momentum_buffer", "exp_avg", "step" …
  at::Tensor value;  // like its parameter, or ("step" …) fp32 without dimensions; undefined: None
};

// state_dict()["state"][index]
struct ParameterState {
  int64_t index;  // counted through all groups
  std::vector<NamedTensor> tensors;
};

// state_dict()["param_groups"][i]: the options without "params", which is `parameters`.
struct GroupState {
  NamedOptions options;
  std::vector<int64_t> parameters;
};

// to.copy_(from) of each pair {to, from}, of equal shapes.
using Copies = std::vector<std::pair<at::Tensor, at::Tensor>>;
using CopyElements = void (*)(const Copies& copies);
void copy_plainly(const Copies& copies);

struct OptimizerState {
  std::vector<ParameterState> parameters;  // those that have state, by index
  std::vector<GroupState> groups;
  CopyElements copy = copy_plainly;  // state whose elements are still in a file has a way of its own
};

}  // namespace lockstep::optim
