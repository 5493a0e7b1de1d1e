#include "lockstep/parallel/graph_walk.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace lockstep::parallel {

using torch::autograd::Node;

std::vector<bool> reached_parameters(const std::vector<at::Tensor>& losses, const std::vector<at::Tensor>& parameters) {
  std::vector<std::shared_ptr<Node>> sinks;  // the nodes that accumulate; weakly held by the parameters
  std::unordered_map<const Node*, size_t> numbers;
  for (size_t i = 0; i < parameters.size(); ++i) {
    sinks.push_back(torch::autograd::impl::grad_accumulator(parameters[i]));
    numbers.emplace(sinks.back().get(), i);
  }
  std::vector<bool> reached(parameters.size());
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> to_visit;
  const auto visit = [&](const std::shared_ptr<Node>& node) {
    if (node != nullptr && seen.insert(node.get()).second) to_visit.push_back(node.get());
  };
  for (const auto& loss : losses) visit(torch::autograd::impl::gradient_edge(loss).function);
  while (!to_visit.empty()) {
    const Node* node = to_visit.back();
    to_visit.pop_back();
    if (const auto found = numbers.find(node); found != numbers.end()) reached[found->second] = true;
    for (const auto& edge : node->next_edges()) visit(edge.function);
  }
  return reached;
}

}  // namespace lockstep::parallel
