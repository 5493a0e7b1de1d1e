// One operation of a trace as its translation to ONNX reads it, and the ONNX graph that the translation adds to.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lockstep/exporting/onnx_model.h"
#include "lockstep/exporting/trace.h"

namespace lockstep::exporting {

// The nodes and tensors that translations have added, and the names that the trace's values have there.
class OnnxGraph {
 public:
  // `sizes_vary`: the model is for images of other sizes than the traced ones.
  OnnxGraph(const torch::jit::Module& module, OnnxModel& model, bool sizes_vary)
      : sizes_vary(sizes_vary), module_(module), model_(model) {}

  // Adds a node and returns the names of its outputs, "Conv_3" or "Split_4_0" and on.
  std::string add(const std::string& op, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {});
  std::vector<std::string> add_several(size_t outputs, const std::string& op, std::vector<std::string> inputs,
                                       std::vector<OnnxAttribute> attributes = {});
  // Adds a tensor that the network does not have, and returns its name.
  std::string constant(const at::Tensor& value);
  std::string constant(const std::vector<int64_t>& values);
  std::string constant(double value);  // fp32, without dimensions

  static bool is_constant(std::string_view name) { return name.starts_with(kConstant); }

  // The name of a tensor of the trace: of a node's output, an input, a parameter or a constant.
  std::string name_of(const torch::jit::Value* value);
  void set_name(const torch::jit::Value* value, const std::string& name) { names_[value] = name; }

  // The sizes that it had in the trace.
  std::vector<int64_t> sizes_of(const torch::jit::Value* value) const;

  const bool sizes_vary;

 private:
  static constexpr const char* kConstant = "constant_";

  const torch::jit::Module& module_;
  OnnxModel& model_;
  std::unordered_map<const torch::jit::Value*, std::string> names_;
  std::unordered_map<std::string, std::string> states_;  // the names of parameters and buffers that are in the model
  std::unordered_map<std::string, int> numbers_;         // of the nodes of each kind
};

// Arguments are called by the names that libtorch's schema gives them.
class Operator {
 public:
  Operator(const torch::jit::Node& node, OnnxGraph& graph) : graph(graph), node_(node) {}

  // Throws ConfigError that names the operation and says what of it has no translation.
  [[noreturn]] void refuse(const std::string& why) const;

  bool has(const char* name) const;  // not None, and in this overload of the operation
  std::string tensor(const char* name) const;
  std::string tensor_or(const char* name, const std::string& otherwise) const;
  std::vector<std::string> tensors(const char* name) const;  // of a list
  int64_t integer(const char* name) const;
  double number(const char* name) const;
  bool flag(const char* name) const;
  std::string text(const char* name) const;
  std::vector<int64_t> integers(const char* name) const;
  std::vector<double> numbers(const char* name) const;
  bool is_tensor(const char* name) const;

  // The traced sizes of an input, and of the output.
  std::vector<int64_t> sizes(const char* name) const;
  std::vector<int64_t> output_sizes() const;
  // A dimension of an input, counted from its front.
  int64_t dimension(const char* name, const char* of) const;

  // Adds a node that computes the operation's only output; or says which tensor it is.
  void becomes(const std::string& op, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {});
  void is(const std::string& name);
  // Gives the tensors of its output, a list.
  void are(const std::vector<std::string>& names);

  const torch::jit::Node& node() const { return node_; }
  OnnxGraph& graph;

 private:
  const torch::jit::Value* argument(const char* name) const;
  c10::IValue value(const char* name) const;

  const torch::jit::Node& node_;
};

using Translation = void (*)(Operator& op);
using Translations = std::unordered_map<std::string_view, Translation>;

// By the operations' names without "aten::".
const Translations& layer_translations();        // convolutions, norms, pooling, resizing, products
const Translations& elementwise_translations();  // activations and arithmetic
const Translations& shape_translations();        // views, permutations, parts, joins

}  // namespace lockstep::exporting
