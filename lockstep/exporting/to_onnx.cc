#include "lockstep/exporting/to_onnx.h"

#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/exporting/operator.h"

namespace lockstep::exporting {
namespace {

namespace jit = torch::jit;

// What only makes or reads values that operations look up themselves.
bool is_silent(const jit::Node& node) {
  const auto kind = node.kind();
  return kind == c10::prim::Constant || kind == c10::prim::GetAttr || kind == c10::prim::ListConstruct ||
         kind == c10::prim::ListUnpack;
}

void translate(const jit::Node& node, OnnxGraph& graph) {
  if (is_silent(node)) return;
  Operator op(node, graph);
  const std::string name = node.kind().toUnqualString();
  if (node.kind().is_aten()) {
    for (const Translations* table : {&layer_translations(), &elementwise_translations(), &shape_translations()}) {
      if (const auto found = table->find(name); found != table->end()) return found->second(op);
    }
  }
  op.refuse("has no translation");
}

OnnxPort port_of(const jit::Value* value, const std::string& name, const OnnxOptions& options,
                 const std::string& sides) {
  const auto type = value->type()->expect<c10::TensorType>();
  OnnxPort port{.name = name, .dtype = type->scalarType().value_or(at::kFloat), .shape = {}};
  const auto sizes = type->sizes().concrete_sizes().value_or(std::vector<int64_t>());
  for (const int64_t size : sizes) port.shape.emplace_back(size);
  if (options.any_batch && !sizes.empty()) port.shape[0] = "batch";
  if (options.any_size && sizes.size() == 4) port.shape[2] = sides + "height", port.shape[3] = sides + "width";
  return port;
}

bool same_node(const OnnxNode& a, const OnnxNode& b) {
  const auto same_attribute = [](const OnnxAttribute& x, const OnnxAttribute& y) {
    return x.name == y.name && x.value == y.value;
  };
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs &&
         std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(), b.attributes.end(), same_attribute);
}

bool same_tensor(const OnnxTensor& a, const OnnxTensor& b) {
  if (a.name != b.name) return false;
  return !OnnxGraph::is_constant(a.name) || (a.value.scalar_type() == b.value.scalar_type() && a.value.equal(b.value));
}

}  // namespace

bool same_operators(const OnnxModel& a, const OnnxModel& b) {
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), same_node) &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(), same_tensor);
}

OnnxModel to_onnx(const Trace& trace, const OnnxOptions& options) {
  const auto graph = trace.graph();
  OnnxModel model;
  OnnxGraph onnx(trace.module, model, options.any_size);
  for (const jit::Value* input : graph->inputs().slice(1)) {  // the first is the module
    const std::string name = input->debugName();
    onnx.set_name(input, name);
    model.inputs.push_back(port_of(input, name, options, ""));
  }
  for (const jit::Node* node : graph->nodes()) translate(*node, onnx);
  const jit::Value* const output = graph->outputs()[0];
  model.nodes.push_back({"Identity", {onnx.name_of(output)}, {"output"}, {}});
  model.outputs.push_back(port_of(output, "output", options, "output_"));
  return model;
}

}  // namespace lockstep::exporting
