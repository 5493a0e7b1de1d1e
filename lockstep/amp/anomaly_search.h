// The state of an AnomalyWatch: the layer that made each tensor's memory, the layer at work, and the anomaly found.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/nn/module.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace lockstep::amp::internal {

// The arguments of an operator's call, kept until it returns.
struct OperatorCall : at::ObserverContext {
  std::string name;
  std::string layer;               // the layer of a parameter among the inputs; "": none
  std::vector<at::Tensor> inputs;  // the floating-point ones, without those that it overwrites
  std::vector<bool> was_finite;    // before the call, for inputs that it writes to; true for others, checked after it
  bool writes = false;             // it writes to some input
  bool makes_infinity = false;     // it was given one as a number
};

// Any thread: a backward on a GPU runs on threads of autograd's.
class AnomalySearch {
 public:
  explicit AnomalySearch(const torch::nn::Module& module);

  std::optional<std::string> found() const;

  // Called around each operator that no other operator called, until one is found.
  std::unique_ptr<OperatorCall> begin(const at::RecordFunction& function);
  void end(const OperatorCall& call, const std::vector<c10::IValue>& outputs);
  // Checks the inputs of a node of backward, before it computes.
  void begin_backward(const at::RecordFunction& function);

 private:
  using Storage = const c10::StorageImpl*;

  std::string parameter_of(const at::Tensor& tensor) const;
  std::string place(const OperatorCall& call) const;
  std::string layer_of_node(const torch::autograd::Node& node) const;
  std::string backward_place() const;
  void judge(const OperatorCall& call, const at::Tensor& output);
  void blame_source(const at::Tensor& tensor, const std::string& reader);

  mutable std::mutex mutex_;
  std::unordered_map<Storage, std::string> parameters_;  // and buffers, by name
  std::unordered_map<Storage, std::string> made_by_;     // layer or node at work when an operator returned it
  std::unordered_set<Storage> meant_;                    // infinite on purpose
  std::string layer_;                                    // the last with parameters
  std::string node_layer_;                               // the same, in backward
  std::optional<std::string> found_;
};

}  // namespace lockstep::amp::internal
