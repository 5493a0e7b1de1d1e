#include "lockstep/parallel/gradients/graph_walk.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_map>
#include <unordered_set>

namespace lockstep::parallel {

using torch::autograd::Node;

namespace {

// The nodes that accumulate into the parameters. Parameters hold them weakly, so this holds them.
class Sinks {
 public:
  explicit Sinks(const std::vector<at::Tensor>& parameters) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      nodes_.push_back(torch::autograd::impl::grad_accumulator(parameters[i]));
      numbers_.emplace(nodes_.back().get(), i);
    }
  }
  Node& node(size_t parameter) const { return *nodes_[parameter]; }
  // Calls visit(parameter) if `node` accumulates into that parameter.
  template <typename Visit>
  void find(const Node* node, Visit&& visit) const {
    if (const auto found = numbers_.find(node); found != numbers_.end()) visit(found->second);
  }

 private:
  std::vector<std::shared_ptr<Node>> nodes_;
  std::unordered_map<const Node*, size_t> numbers_;
};

// Calls visit(node) once for every node that backward from `losses` reaches.
template <typename Visit>
void walk(const std::vector<at::Tensor>& losses, Visit&& visit) {
  std::unordered_set<const Node*> seen;
  std::vector<std::shared_ptr<Node>> to_visit;
  const auto add = [&](const std::shared_ptr<Node>& node) {
    if (node != nullptr && seen.insert(node.get()).second) to_visit.push_back(node);
  };
  for (const auto& loss : losses) add(torch::autograd::impl::gradient_edge(loss).function);
  while (!to_visit.empty()) {
    const std::shared_ptr<Node> node = std::move(to_visit.back());
    to_visit.pop_back();
    visit(node);
    for (const auto& edge : node->next_edges()) add(edge.function);
  }
}

bool hooked(const at::Tensor& parameter, Node& sink) {
  return !torch::autograd::impl::hooks(parameter).empty() || !sink.tensor_pre_hooks().empty() ||
         !sink.pre_hooks().empty() || !sink.post_hooks().empty();
}

}  // namespace

std::vector<bool> reached_parameters(const std::vector<at::Tensor>& losses, const std::vector<at::Tensor>& parameters) {
  const Sinks sinks(parameters);
  std::vector<bool> reached(parameters.size());
  walk(losses, [&](const auto& node) { sinks.find(node.get(), [&](size_t i) { reached[i] = true; }); });
  return reached;
}

std::vector<at::Tensor> leaves_of(const at::Tensor& loss) {
  std::vector<at::Tensor> leaves;
  walk({loss}, [&](const auto& node) {
    const auto* const leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node.get());
    if (leaf != nullptr) leaves.push_back(leaf->variable);
  });
  return leaves;
}

std::vector<std::shared_ptr<Node>> lone_casts(const at::Tensor& loss, const std::vector<at::Tensor>& parameters) {
  const Sinks sinks(parameters);
  std::vector<std::shared_ptr<Node>> users(parameters.size());
  std::vector<size_t> count(parameters.size());
  walk({loss}, [&](const auto& node) {
    for (const auto& edge : node->next_edges()) {
      sinks.find(edge.function.get(), [&](size_t i) { users[i] = node, ++count[i]; });
    }
  });
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (count[i] != 1 || hooked(parameters[i], sinks.node(i)) || users[i]->name() != "ToCopyBackward0")
      users[i].reset();
  }
  return users;
}

}  // namespace lockstep::parallel
