#include "lockstep/exporting/trace.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::exporting {
namespace {

namespace jit = torch::jit;

// Of the largest value; an output is the sum of many, which other kernels add in another order.
constexpr double kTolerance = 1e-4;

void check_state(const std::string& name, const at::Tensor& value) {
  if (value.is_cpu() && (!value.is_floating_point() || value.scalar_type() == at::kFloat)) return;
  throw ConfigError("export: ", name, " is of ", value.scalar_type(), " on ", value.device(),
                    "; export a network of float32 on the CPU: module->to(torch::kCPU, torch::kFloat)");
}

// The tree of a module's parameters and buffers.
jit::Module tree_of(const torch::nn::Module& module, const std::shared_ptr<jit::CompilationUnit>& unit) {
  jit::Module level(c10::QualifiedName("__torch__.lockstep.Module"), unit, /*shouldMangle=*/true);
  level.register_attribute("training", c10::BoolType::get(), false);
  for (const auto& each : module.named_parameters(/*recurse=*/false)) {
    check_state(each.key(), each.value());
    level.register_parameter(each.key(), each.value(), /*is_buffer=*/false);
  }
  for (const auto& each : module.named_buffers(/*recurse=*/false)) {
    check_state(each.key(), each.value());
    level.register_buffer(each.key(), each.value());
  }
  for (const auto& each : module.named_children()) level.register_module(each.key(), tree_of(*each.value(), unit));
  return level;
}

std::vector<c10::IValue> values_of(const std::vector<at::Tensor>& tensors) { return {tensors.begin(), tensors.end()}; }

}  // namespace

Trace trace(const torch::nn::Module& module, const Forward& forward, const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard no_grad;
  jit::Module tree = tree_of(module, std::make_shared<jit::CompilationUnit>());
  const auto record = [&](const jit::Stack& stack) {
    std::vector<at::Tensor> given;
    for (const auto& value : stack) given.push_back(value.toTensor());
    return jit::Stack{forward(given)};
  };
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) names.push_back(inputs.size() == 1 ? "input" : cat("input", i + 1));
  const auto [state, outputs] = jit::tracer::trace(
      values_of(inputs), record, [](const at::Tensor&) { return std::string(); }, /*strict=*/true,
      /*force_outplace=*/true, &tree, names);
  jit::EliminateDeadCode(state->graph);
  const c10::QualifiedName name(*tree.type()->name(), "forward");
  tree.type()->addMethod(tree._ivalue()->compilation_unit()->create_function(name, state->graph));
  return {tree};
}

void check_trace(const Trace& trace, const Forward& forward, const std::vector<at::Tensor>& inputs,
                 const std::string& what) {
  const at::NoGradGuard no_grad;
  const jit::GraphOptimizerEnabledGuard plainly(false);
  const at::Tensor wanted = forward(inputs);
  at::Tensor found;
  try {
    jit::Module module = trace.module;
    found = module.forward(values_of(inputs)).toTensor();
  } catch (const std::exception& error) {
    throw ConfigError("export: what was recorded of the network can't compute ", what,
                      ": a size has become a number (flatten(1) keeps the batch, view({x.size(0), -1}) does not)");
  }
  const double most = wanted.numel() == 0 ? 0 : wanted.nan_to_num(0, 0, 0).abs().max().item<double>();
  const bool same_shape = found.sizes() == wanted.sizes();
  if (same_shape && at::allclose(found, wanted, 0, kTolerance * std::max(1.0, most), /*equal_nan=*/true)) return;
  throw ConfigError("export: what was recorded of the network computes something else than the network for ", what,
                    ": its operations depend on the input, or are not all libtorch's");
}

std::string state_name(const jit::Value* value) {
  std::string name;
  for (; value->node()->kind() == c10::prim::GetAttr; value = value->node()->input(0)) {
    name = value->node()->s(c10::attr::name) + (name.empty() ? "" : "." + name);
  }
  return name;
}

std::pair<jit::Module, std::string> level_of(const jit::Module& module, const std::string& name) {
  jit::Module level = module;
  std::string rest = name;
  for (size_t dot = rest.find('.'); dot != std::string::npos; dot = rest.find('.')) {
    level = level.attr(rest.substr(0, dot)).toModule();
    rest.erase(0, dot + 1);
  }
  return {level, rest};
}

at::Tensor state_value(const jit::Module& module, const std::string& name) {
  const auto [level, own] = level_of(module, name);
  return level.attr(own).toTensor();
}

}  // namespace lockstep::exporting
