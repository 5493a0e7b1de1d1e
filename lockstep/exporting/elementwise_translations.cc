// Activations and arithmetic in ONNX.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "lockstep/exporting/operator.h"

namespace lockstep::exporting {
namespace {

at::ScalarType dtype_of(const Operator& op) {
  return op.node().output()->type()->expect<c10::TensorType>()->scalarType().value_or(at::kFloat);
}

std::string number_of(const Operator& op, double value) {
  return op.graph.constant(at::scalar_tensor(value, dtype_of(op)));
}

std::string operand(const Operator& op, const char* name) {
  return op.is_tensor(name) ? op.tensor(name) : number_of(op, op.number(name));
}

// Operations of one tensor that ONNX has, too. Their name is the template's argument, for a translation has no state.
template <size_t Size>
struct Name {
  constexpr Name(const char (&text)[Size]) { std::copy_n(text, Size, characters); }  // NOLINT: a literal becomes one
  char characters[Size] = {};
};
template <Name Of>
void same(Operator& op) {
  op.becomes(Of.characters, {op.tensor("self")});
}

void clamp_between(Operator& op, const char* least, const char* most) {
  const auto bound = [&](const char* name) { return op.has(name) ? operand(op, name) : std::string(); };
  op.becomes("Clip", {op.tensor("self"), bound(least), bound(most)});
}
void clamp(Operator& op) { clamp_between(op, "min", "max"); }
void hardtanh(Operator& op) { clamp_between(op, "min_val", "max_val"); }
void relu6(Operator& op) { op.becomes("Clip", {op.tensor("self"), number_of(op, 0), number_of(op, 6)}); }

void leaky_relu(Operator& op) {
  op.becomes("LeakyRelu", {op.tensor("self")}, {{"alpha", static_cast<float>(op.number("negative_slope"))}});
}

void elu(Operator& op) {
  if (op.number("scale") != 1 || op.number("input_scale") != 1) op.refuse("has a scale");
  op.becomes("Elu", {op.tensor("self")}, {{"alpha", static_cast<float>(op.number("alpha"))}});
}

void silu(Operator& op) { op.becomes("Mul", {op.tensor("self"), op.graph.add("Sigmoid", {op.tensor("self")})}); }

void hardsigmoid(Operator& op) {
  op.becomes("HardSigmoid", {op.tensor("self")}, {{"alpha", static_cast<float>(1.0 / 6)}, {"beta", 0.5F}});
}

// x / 2 · (1 + erf(x / √2))
void gelu(Operator& op) {
  if (op.text("approximate") != "none") op.refuse("is approximated");
  const std::string x = op.tensor("self");
  const std::string inner = op.graph.add("Erf", {op.graph.add("Mul", {x, number_of(op, std::sqrt(0.5))})});
  const std::string share = op.graph.add("Add", {inner, number_of(op, 1)});
  op.becomes("Mul", {op.graph.add("Mul", {x, number_of(op, 0.5)}), share});
}

void prelu(Operator& op) {
  std::vector<int64_t> shape(op.sizes("self").size(), 1);
  if (shape.size() > 1) shape[1] = -1;
  const std::string slopes = op.graph.add("Reshape", {op.tensor("weight"), op.graph.constant(shape)});
  op.becomes("PRelu", {op.tensor("self"), slopes});
}

// a + alpha · b
void add_scaled(Operator& op, const char* name) {
  std::string other = operand(op, "other");
  if (op.has("alpha") && op.number("alpha") != 1) {
    other = op.graph.add("Mul", {other, number_of(op, op.number("alpha"))});
  }
  op.becomes(name, {op.tensor("self"), other});
}
void add(Operator& op) { add_scaled(op, "Add"); }
void subtract(Operator& op) { add_scaled(op, "Sub"); }
void multiply(Operator& op) { op.becomes("Mul", {op.tensor("self"), operand(op, "other")}); }

void divide(Operator& op) {
  if (op.has("rounding_mode")) op.refuse("rounds");
  if (!at::isFloatingType(dtype_of(op))) op.refuse("is of whole numbers");
  op.becomes("Div", {op.tensor("self"), operand(op, "other")});
}

void power(Operator& op) { op.becomes("Pow", {op.tensor("self"), operand(op, "exponent")}); }

void softmax_as(Operator& op, const char* name) {
  op.becomes(name, {op.tensor("self")}, {{"axis", op.dimension("dim", "self")}});
}
void softmax(Operator& op) { softmax_as(op, "Softmax"); }
void log_softmax(Operator& op) { softmax_as(op, "LogSoftmax"); }

// Dropout of a network in eval mode, and what changes memory alone.
void identity(Operator& op) { op.is(op.graph.name_of(op.node().input(0))); }

void dropout(Operator& op) {
  if (op.flag("train")) op.refuse("draws random numbers: the network is in training");
  identity(op);
}

void convert(Operator& op) {
  const auto from = op.node().input(0)->type()->expect<c10::TensorType>()->scalarType();
  if (from != dtype_of(op)) op.refuse("changes the dtype");
  identity(op);
}

}  // namespace

const Translations& elementwise_translations() {
  static const Translations table = {
      {"relu", same<"Relu">},
      {"sigmoid", same<"Sigmoid">},
      {"tanh", same<"Tanh">},
      {"exp", same<"Exp">},
      {"log", same<"Log">},
      {"sqrt", same<"Sqrt">},
      {"neg", same<"Neg">},
      {"abs", same<"Abs">},
      {"erf", same<"Erf">},
      {"hardswish", same<"HardSwish">},
      {"clamp", clamp},
      {"clamp_min", clamp},
      {"clamp_max", clamp},
      {"hardtanh", hardtanh},
      {"relu6", relu6},
      {"leaky_relu", leaky_relu},
      {"elu", elu},
      {"silu", silu},
      {"hardsigmoid", hardsigmoid},
      {"gelu", gelu},
      {"prelu", prelu},
      {"add", add},
      {"sub", subtract},
      {"mul", multiply},
      {"div", divide},
      {"pow", power},
      {"softmax", softmax},
      {"log_softmax", log_softmax},
      {"dropout", dropout},
      {"feature_dropout", dropout},
      {"contiguous", identity},
      {"clone", identity},
      {"detach", identity},
      {"alias", identity},
      {"to", convert},
  };
  return table;
}

}  // namespace lockstep::exporting
