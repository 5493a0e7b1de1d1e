#include "lockstep/exporting/fold_batch_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>

#include <vector>

namespace lockstep::exporting {
namespace {

namespace jit = torch::jit;

bool is_none(const jit::Value* value) { return value->mustBeNone(); }

// How often the graph reads a parameter or buffer.
int uses_of(const jit::Graph& graph, const std::string& name) {
  int uses = 0;
  for (const jit::Node* node : graph.nodes()) {
    for (const jit::Value* input : node->inputs()) uses += state_name(input) == name ? 1 : 0;
  }
  return uses;
}

// The convolution whose output the norm alone uses; null if that is something else.
jit::Node* convolution_before(jit::Node* norm) {
  jit::Value* const input = norm->namedInput("input");
  jit::Node* conv = input->node();
  const auto& kind = conv->kind();
  const bool is_conv = kind == c10::aten::_convolution || kind == c10::aten::conv2d;
  if (!is_conv || input->uses().size() != 1) return nullptr;
  const bool transposed = kind == c10::aten::_convolution && *jit::constant_as<bool>(conv->namedInput("transposed"));
  return transposed ? nullptr : conv;
}

bool can_fold(const jit::Graph& graph, jit::Node* conv, jit::Node* norm) {
  const jit::Value* bias = conv->namedInput("bias");
  const std::string filters = state_name(conv->namedInput("weight"));
  if (filters.empty() || uses_of(graph, filters) != 1) return false;
  if (!is_none(bias) && (state_name(bias).empty() || uses_of(graph, state_name(bias)) != 1)) return false;
  if (*jit::constant_as<bool>(norm->namedInput("training"))) return false;
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
    const jit::Value* value = norm->namedInput(name);
    if (!is_none(value) && state_name(value).empty()) return false;
  }
  return true;
}

// The tensor that a value of the graph is, in fp64, or `otherwise` for one that is left out.
at::Tensor wide(const Trace& trace, const jit::Value* value, const at::Tensor& otherwise) {
  return is_none(value) ? otherwise : state_value(trace.module, state_name(value)).detach().to(at::kDouble);
}

// Gives a parameter another value, in the trace alone.
void replace(Trace& trace, const std::string& name, const at::Tensor& value) {
  auto [level, own] = level_of(trace.module, name);
  level.register_parameter(own, value.to(at::kFloat), /*is_buffer=*/false);
}

// Adds a bias beside the filters, and returns its own name.
std::string add_bias(Trace& trace, const std::string& filters, const at::Tensor& value) {
  auto [level, own] = level_of(trace.module, filters);
  std::string name = own == "weight" ? "bias" : own + "_bias";
  while (level.hasattr(name)) name += '_';
  level.register_parameter(name, value.to(at::kFloat), /*is_buffer=*/false);
  return name;
}

void fold(Trace& trace, jit::Node* conv, jit::Node* norm) {
  const at::Tensor filters = wide(trace, conv->namedInput("weight"), {});
  const at::Tensor zeros = at::zeros({filters.size(0)}, at::kDouble);
  const at::Tensor mean = wide(trace, norm->namedInput("running_mean"), zeros),
                   var = wide(trace, norm->namedInput("running_var"), zeros);
  const double eps = *jit::constant_as<double>(norm->namedInput("eps"));
  const at::Tensor scale = wide(trace, norm->namedInput("weight"), at::ones_like(zeros)) / (var + eps).sqrt();
  const at::Tensor bias =
      (wide(trace, conv->namedInput("bias"), zeros) - mean) * scale + wide(trace, norm->namedInput("bias"), zeros);
  std::vector<int64_t> of_filters(static_cast<size_t>(filters.dim()), 1);
  of_filters[0] = -1;

  jit::Value* const weight = conv->namedInput("weight");
  const std::string name = state_name(weight);
  replace(trace, name, filters * scale.view(of_filters));
  if (is_none(conv->namedInput("bias"))) {
    jit::Graph& graph = *conv->owningGraph();
    const std::string bias_name = add_bias(trace, name, bias);
    jit::Node* const read = graph.createGetAttr(weight->node()->input(0), bias_name)->insertAfter(weight->node());
    read->output()->setType(weight->type()->expect<c10::TensorType>()->withSizes({filters.size(0)}));
    conv->replaceInput(2, read->output());
  } else {
    replace(trace, state_name(conv->namedInput("bias")), bias);
  }
  norm->output()->replaceAllUsesWith(conv->output());
}

}  // namespace

int fold_batch_norm(Trace& trace) {
  const auto graph = trace.graph();
  int folded = 0;
  for (jit::Node* node : graph->nodes()) {
    if (node->kind() != c10::aten::batch_norm) continue;
    jit::Node* const conv = convolution_before(node);
    if (conv == nullptr || !can_fold(*graph, conv, node)) continue;
    fold(trace, conv, node);
    ++folded;
  }
  jit::EliminateDeadCode(graph);
  return folded;
}

}  // namespace lockstep::exporting
