#include "lockstep/nn/function_graph.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "lockstep/base/error.h"

namespace lockstep::nn {
namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Node;

bool contains(const std::vector<at::Tensor>& tensors, const at::Tensor& tensor) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const auto& each) { return each.is_same(tensor); });
}

// Autocast keeps a weight's cast for later uses, also one that was made before the function began.
bool is_kept_cast(const Node& node) {
  const auto& edges = node.next_edges();
  return node.name() == "ToCopyBackward0" && edges.size() == 1 &&
         dynamic_cast<const AccumulateGrad*>(edges[0].function.get()) != nullptr;
}

// InstanceNorm of libtorch's is a BatchNorm over copies of its statistics, one for each sample, which the graph alone
// holds; it then writes their mean to its own. Which those are nothing tells but their number.
bool contains_copied(const std::vector<at::Tensor>& tensors, const at::Tensor& mean) {
  constexpr size_t kGraphAndCaller = 2;
  return mean.use_count() <= kGraphAndCaller && std::any_of(tensors.begin(), tensors.end(), [&](const auto& each) {
           return each.dim() == 1 && each.is_floating_point() && each.numel() > 0 && mean.numel() % each.numel() == 0;
         });
}

// Whether the node is of kind BatchNorm, and its forward has changed statistics that nobody gives back.
template <typename BatchNorm>
bool changed_statistics(Node* node, const std::vector<at::Tensor>& buffers) {
  auto* const norm = dynamic_cast<BatchNorm*>(node);
  if (norm == nullptr || !norm->training) return false;
  const at::Tensor mean = norm->running_mean_.unpack();
  return mean.defined() && !contains(buffers, mean) && !contains_copied(buffers, mean);
}

void check(const std::shared_ptr<Node>& node, uint64_t begin, const std::vector<at::Tensor>& buffers) {
  using torch::autograd::generated::CudnnBatchNormBackward0;
  using torch::autograd::generated::NativeBatchNormBackward0;
  if (node->sequence_nr() < begin && !is_kept_cast(*node)) {
    throw ConfigError("checkpoint: the function uses a result of ", node->name(),
                      " from before, whose gradient would be lost; give that tensor as one of the inputs");
  }
  if (changed_statistics<NativeBatchNormBackward0>(node.get(), buffers) ||
      changed_statistics<CudnnBatchNormBackward0>(node.get(), buffers)) {
    throw ConfigError(
        "checkpoint: a BatchNorm or InstanceNorm of libtorch's would update its running statistics again in the "
        "recomputation; name the module's buffers() in CheckpointOptions::buffers, or use lockstep::nn::BatchNorm2d");
  }
}

}  // namespace

std::vector<at::Tensor> parameters_reached(const std::vector<at::Tensor>& outputs,
                                           const std::vector<at::Tensor>& inputs, uint64_t begin,
                                           const std::vector<at::Tensor>& buffers) {
  std::vector<at::Tensor> parameters;
  std::unordered_set<const Node*> seen;
  std::vector<std::shared_ptr<Node>> to_visit;
  const auto add = [&](const std::shared_ptr<Node>& node) {
    if (node != nullptr && seen.insert(node.get()).second) to_visit.push_back(node);
  };
  for (const at::Tensor& output : outputs) {
    if (output.requires_grad()) add(torch::autograd::impl::gradient_edge(output).function);
  }
  while (!to_visit.empty()) {
    const std::shared_ptr<Node> node = std::move(to_visit.back());
    to_visit.pop_back();
    if (const auto* leaf = dynamic_cast<const AccumulateGrad*>(node.get())) {
      if (!contains(inputs, leaf->variable)) parameters.push_back(leaf->variable);
      continue;
    }
    check(node, begin, buffers);
    for (const auto& edge : node->next_edges()) add(edge.function);
  }
  return parameters;
}

}  // namespace lockstep::nn
