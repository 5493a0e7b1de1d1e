// A network's operations as libtorch's tracer records them while it computes an example.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/exporting/forward.h"

namespace lockstep::exporting {

struct Trace {
  torch::jit::Module module;  // the network's parameters and buffers under their names, and the method forward
  std::shared_ptr<torch::jit::Graph> graph() const { return module.get_method("forward").graph(); }
};

// Records what `forward` computes of the inputs, which uses the module's parameters. The module should be in eval mode;
// its tensors are shared. Throws ConfigError for parameters that are not on the CPU, or floating-point and not fp32.
Trace trace(const torch::nn::Module& module, const Forward& forward, const std::vector<at::Tensor>& inputs);

// Computes the recorded operations and the network itself on inputs that were not traced, and throws ConfigError if
// they differ: `what` says how the inputs do. A network differs whose operations or sizes depend on the inputs, or that
// computes by other means than libtorch's operations.
void check_trace(const Trace& trace, const Forward& forward, const std::vector<at::Tensor>& inputs,
                 const std::string& what);

// "layer1.0.conv1.weight" for a value of the graph that is a parameter or buffer; "" for others.
std::string state_name(const torch::jit::Value* value);
// The tensor of that name.
at::Tensor state_value(const torch::jit::Module& module, const std::string& name);
// The level of names that a parameter or buffer is in, and its own name there.
std::pair<torch::jit::Module, std::string> level_of(const torch::jit::Module& module, const std::string& name);

}  // namespace lockstep::exporting
