#include "lockstep/amp/anomaly_search.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/aminmax.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/text.h"

namespace lockstep::amp::internal {
namespace {

using torch::autograd::Node;

enum class Values { kFinite, kInfinite, kNan };

bool can_be_looked_at(const at::Tensor& t) {
  return t.defined() && t.is_floating_point() && t.layout() == c10::kStrided && !t.is_meta() && t.numel() > 0;
}

// One pass, unseen by callbacks, autograd and autocast.
Values values_of(const at::Tensor& t) {
  if (!can_be_looked_at(t)) return Values::kFinite;
  const at::RecordFunctionGuard unseen(false);
  const c10::AutoGradMode no_grad(false);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto [least, most] = at::aminmax(t.detach());
  const double low = least.item<double>(), high = most.item<double>();  // NaN if one is among the values
  if (std::isnan(low) || std::isnan(high)) return Values::kNan;
  return std::isinf(low) || std::isinf(high) ? Values::kInfinite : Values::kFinite;
}

const c10::StorageImpl* storage_of(const at::Tensor& t) {
  return t.defined() && t.has_storage() ? t.storage().unsafeGetStorageImpl() : nullptr;
}

template <typename Visit>
void each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) visit(value.toTensor());
  if (!value.isTensorList()) return;
  for (const at::Tensor& each : value.toTensorVector()) visit(each);
}

bool is_infinite(const c10::IValue& value) { return value.isDouble() && std::isinf(value.toDouble()); }

bool in_backward() { return torch::autograd::get_current_node() != nullptr; }

// Whether the operator overwrites the argument that it writes to, so that the values before do not matter.
bool overwrites(const std::string& name) {
  return name == "aten::copy_" || name == "aten::fill_" || name == "aten::zero_" || name == "aten::set_";
}

// Returns memory that nothing has been written to yet.
bool returns_garbage(const std::string& name) {
  return name.rfind("aten::empty", 0) == 0 || name.rfind("aten::new_empty", 0) == 0 ||
         name.rfind("aten::resize", 0) == 0 || name.rfind("aten::_empty", 0) == 0;
}

std::string layer_of(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

// "FusedBatchNorm" for torch::autograd::CppNode<lockstep::nn::(anonymous namespace)::FusedBatchNorm>.
std::string plain(std::string name) {
  if (name.rfind("torch::autograd::", 0) != 0) return name;
  const size_t colon = name.rfind(':');
  name = name.substr(colon + 1);
  if (!name.empty() && name.back() == '>') name.pop_back();
  return name;
}

}  // namespace

AnomalySearch::AnomalySearch(const torch::nn::Module& module) {
  for (const auto& each : module.named_parameters()) parameters_.emplace(storage_of(each.value()), each.key());
  for (const auto& each : module.named_buffers()) parameters_.emplace(storage_of(each.value()), each.key());
  parameters_.erase(nullptr);
}

// A parameter itself, a view of one, or a cast or rearranged copy that autograd has recorded. "" for anything else.
std::string AnomalySearch::parameter_of(const at::Tensor& tensor) const {
  const auto known = parameters_.find(storage_of(tensor));
  if (known != parameters_.end()) return known->second;
  constexpr int kMostSteps = 8;  // permuted, reshaped, cast: more is no mere copy
  std::shared_ptr<Node> node = tensor.grad_fn();
  for (int i = 0; i < kMostSteps && node && node->num_outputs() == 1; ++i) {
    node = node->next_edge(0).function;
    const auto* const leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get());
    if (leaf == nullptr) continue;
    const auto copied = parameters_.find(storage_of(leaf->variable));
    return copied != parameters_.end() && leaf->variable.numel() == tensor.numel() ? copied->second : "";
  }
  return "";
}

std::optional<std::string> AnomalySearch::found() const {
  const std::lock_guard lock(mutex_);
  return found_;
}

std::unique_ptr<OperatorCall> AnomalySearch::begin(const at::RecordFunction& function) {
  const std::lock_guard lock(mutex_);
  auto call = std::make_unique<OperatorCall>();
  call->name = function.name();
  const auto op = function.operator_name();
  const auto handle = op ? c10::Dispatcher::singleton().findSchema(*op) : std::nullopt;
  const auto inputs = function.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto* const alias =
        handle && i < handle->schema().arguments().size() ? handle->schema().arguments()[i].alias_info() : nullptr;
    const bool written = alias != nullptr && alias->isWrite();
    const bool is_result = written && (overwrites(call->name) || handle->schema().arguments()[i].is_out());
    call->writes |= written;
    call->makes_infinity |= is_infinite(inputs[i]);
    each_tensor(inputs[i], [&](const at::Tensor& t) {
      if (!can_be_looked_at(t)) return;
      if (call->layer.empty()) call->layer = layer_of(parameter_of(t));
      if (is_result) return;
      call->inputs.push_back(t);
      call->was_finite.push_back(!written || values_of(t) == Values::kFinite);
    });
  }
  if (!call->layer.empty()) layer_ = call->layer;
  return call;
}

void AnomalySearch::end(const OperatorCall& call, const std::vector<c10::IValue>& outputs) {
  const std::lock_guard lock(mutex_);
  for (const c10::IValue& value : outputs) {
    each_tensor(value, [&](const at::Tensor& output) {
      const auto storage = storage_of(output);
      const bool is_view = std::any_of(call.inputs.begin(), call.inputs.end(),
                                       [&](const at::Tensor& t) { return storage_of(t) == storage; });
      if (!is_view && storage != nullptr) {
        made_by_[storage] = in_backward() ? backward_place() : layer_;
        meant_.erase(storage);
      }
      if (found_ || (is_view && !call.writes) || returns_garbage(call.name)) return;
      judge(call, output);
    });
  }
}

void AnomalySearch::judge(const OperatorCall& call, const at::Tensor& output) {
  const Values values = values_of(output);
  if (values == Values::kFinite) return;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const at::Tensor& input = call.inputs[i];
    const bool finite_now = storage_of(input) == storage_of(output) || values_of(input) == Values::kFinite;
    if (call.was_finite[i] && finite_now) continue;
    const bool is_update = !call.was_finite[i] && parameters_.contains(storage_of(input));
    if (is_update) return;  // of statistics that overflowed in an earlier step: no forward in training reads them
    if (!meant_.contains(storage_of(input))) return blame_source(input, call.name);
    if (values == Values::kInfinite) meant_.insert(storage_of(output));
    if (values == Values::kInfinite) return;
  }
  if (call.makes_infinity && values == Values::kInfinite) {
    meant_.insert(storage_of(output));
  } else {
    found_ = place(call);
  }
}

std::string AnomalySearch::place(const OperatorCall& call) const {
  if (in_backward()) return backward_place();
  if (!call.layer.empty()) return cat(call.layer, " (", call.name, ')');
  return layer_.empty() ? call.name : cat(call.name, " after ", layer_);
}

// A node of backward is a layer's if one of the gradients that it gives is that of a parameter.
std::string AnomalySearch::layer_of_node(const Node& node) const {
  for (const auto& edge : node.next_edges()) {
    const auto* const leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(edge.function.get());
    if (leaf == nullptr) continue;
    const auto known = parameters_.find(storage_of(leaf->variable));
    if (known != parameters_.end()) return layer_of(known->second);
  }
  return "";
}

std::string AnomalySearch::backward_place() const {
  const auto node = torch::autograd::get_current_node();
  const std::string layer = layer_of_node(*node), name = plain(node->name());
  if (!layer.empty()) return cat("backward of ", layer, " (", name, ')');
  return node_layer_.empty() ? cat("backward: ", name) : cat("backward: ", name, " after that of ", node_layer_);
}

void AnomalySearch::begin_backward(const at::RecordFunction& function) {
  const std::lock_guard lock(mutex_);
  for (const c10::IValue& input : function.inputs()) {
    each_tensor(input, [&](const at::Tensor& t) {
      if (!found_ && values_of(t) != Values::kFinite) blame_source(t, plain(function.name()));
    });
  }
  const auto node = torch::autograd::get_current_node();
  const std::string layer = node ? layer_of_node(*node) : "";
  if (!layer.empty()) node_layer_ = layer;
}

// Names the source of a tensor that is not finite when `reader` reads it, although no operator was seen to make it so.
void AnomalySearch::blame_source(const at::Tensor& tensor, const std::string& reader) {
  const auto parameter = parameters_.find(storage_of(tensor));
  if (parameter != parameters_.end()) {
    found_ = cat(parameter->second, " itself");
    return;
  }
  const auto maker = made_by_.find(storage_of(tensor));
  if (maker == made_by_.end()) {
    found_ = "the input";
  } else {
    found_ = maker->second.empty() ? cat("before ", reader) : cat(maker->second, ", before ", reader);
  }
}

}  // namespace lockstep::amp::internal
