#include "lockstep/exporting/operator.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/constants.h>

#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::exporting {

namespace jit = torch::jit;

std::vector<std::string> OnnxGraph::add_several(size_t outputs, const std::string& op, std::vector<std::string> inputs,
                                                std::vector<OnnxAttribute> attributes) {
  const std::string name = cat(op, '_', numbers_[op]++);
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) names.push_back(outputs == 1 ? name : cat(name, '_', i));
  model_.nodes.push_back({op, std::move(inputs), names, std::move(attributes)});
  return names;
}

std::string OnnxGraph::add(const std::string& op, std::vector<std::string> inputs,
                           std::vector<OnnxAttribute> attributes) {
  return add_several(1, op, std::move(inputs), std::move(attributes))[0];
}

std::string OnnxGraph::constant(const at::Tensor& value) {
  for (const auto& each : model_.tensors) {
    if (is_constant(each.name) && each.value.scalar_type() == value.scalar_type() && each.value.equal(value)) {
      return each.name;
    }
  }
  model_.tensors.push_back({cat(kConstant, numbers_[kConstant]++), value});
  return model_.tensors.back().name;
}

std::string OnnxGraph::constant(const std::vector<int64_t>& values) { return constant(at::tensor(values, at::kLong)); }
std::string OnnxGraph::constant(double value) { return constant(at::scalar_tensor(value, at::kFloat)); }

std::string OnnxGraph::name_of(const jit::Value* value) {
  if (const auto found = names_.find(value); found != names_.end()) return found->second;
  if (const std::string state = state_name(value); !state.empty()) {
    const auto [found, is_new] = states_.try_emplace(state, state);
    if (is_new) model_.tensors.push_back({state, state_value(module_, state).detach()});
    return found->second;
  }
  const auto constant_value = jit::toIValue(value);
  if (!constant_value || !constant_value->isTensor()) {
    throw BugError("export: ", value->debugName(), " of the trace is no tensor");
  }
  return names_[value] = constant(constant_value->toTensor().detach());
}

std::vector<int64_t> OnnxGraph::sizes_of(const jit::Value* value) const {
  if (const std::string state = state_name(value); !state.empty()) return state_value(module_, state).sizes().vec();
  const auto sizes = value->type()->expect<c10::TensorType>()->sizes().concrete_sizes();
  if (!sizes) throw BugError("export: the trace does not say the sizes of ", value->debugName());
  return *sizes;
}

void Operator::refuse(const std::string& why) const {
  throw ConfigError("export: ", node_.kind().toQualString(), ' ', why,
                    ", so the network can't be an ONNX file; --format torchscript takes every network");
}

bool Operator::has(const char* name) const {
  return node_.schema().argumentIndexWithName(name).has_value() && !argument(name)->mustBeNone();
}

const jit::Value* Operator::argument(const char* name) const { return node_.namedInput(std::string(name)); }

// A number may depend on the input's sizes only where a trace was made in Python.
c10::IValue Operator::value(const char* name) const {
  const jit::Value* given = argument(name);
  if (const auto found = jit::toIValue(given)) return *found;
  if (given->node()->kind() != c10::prim::ListConstruct) refuse(cat("has an argument ", name, " that is computed"));
  c10::impl::GenericList list(c10::AnyType::get());
  for (const jit::Value* item : given->node()->inputs()) {
    const auto found = jit::toIValue(item);
    if (!found) refuse(cat("has an argument ", name, " that is computed"));
    list.push_back(*found);
  }
  return list;
}

std::string Operator::tensor(const char* name) const { return graph.name_of(argument(name)); }
std::string Operator::tensor_or(const char* name, const std::string& otherwise) const {
  return has(name) ? tensor(name) : otherwise;
}

std::vector<std::string> Operator::tensors(const char* name) const {
  const jit::Node* const list = argument(name)->node();
  if (list->kind() != c10::prim::ListConstruct) refuse(cat("takes a list ", name, " that is computed"));
  std::vector<std::string> names;
  for (const jit::Value* item : list->inputs()) names.push_back(graph.name_of(item));
  return names;
}

int64_t Operator::integer(const char* name) const { return value(name).toScalar().toLong(); }
double Operator::number(const char* name) const { return value(name).toScalar().toDouble(); }
bool Operator::flag(const char* name) const { return value(name).toBool(); }
std::string Operator::text(const char* name) const { return value(name).toStringRef(); }
bool Operator::is_tensor(const char* name) const {
  return argument(name)->type()->isSubtypeOf(*c10::TensorType::get());
}

std::vector<int64_t> Operator::integers(const char* name) const {
  const c10::IValue given = value(name);
  if (given.isInt()) return {given.toInt()};
  std::vector<int64_t> numbers;
  for (const c10::IValue& each : given.toListRef()) numbers.push_back(each.toInt());
  return numbers;
}

std::vector<double> Operator::numbers(const char* name) const {
  std::vector<double> numbers;
  for (const c10::IValue& each : value(name).toListRef()) numbers.push_back(each.toScalar().toDouble());
  return numbers;
}

std::vector<int64_t> Operator::sizes(const char* name) const { return graph.sizes_of(argument(name)); }
std::vector<int64_t> Operator::output_sizes() const { return graph.sizes_of(node_.output()); }

int64_t Operator::dimension(const char* name, const char* of) const {
  const int64_t given = integer(name);
  return given < 0 ? given + static_cast<int64_t>(sizes(of).size()) : given;
}

void Operator::becomes(const std::string& op, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes) {
  is(graph.add(op, std::move(inputs), std::move(attributes)));
}
void Operator::is(const std::string& name) { graph.set_name(node_.output(), name); }

void Operator::are(const std::vector<std::string>& names) {
  const auto& uses = node_.output()->uses();
  if (uses.size() != 1 || uses[0].user->kind() != c10::prim::ListUnpack) refuse("gives a list that is not taken apart");
  const auto& parts = uses[0].user->outputs();
  for (size_t i = 0; i < parts.size(); ++i) graph.set_name(parts[i], names.at(i));
}

}  // namespace lockstep::exporting
