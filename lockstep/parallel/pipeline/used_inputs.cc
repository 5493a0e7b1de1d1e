#include "lockstep/parallel/pipeline/used_inputs.h"

#include <algorithm>
#include <iterator>

#include "lockstep/parallel/gradients/graph_walk.h"

namespace lockstep::parallel {

void UsedInputs::note(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs,
                      const at::Tensor& loss) {
  used_.resize(std::max(used_.size(), inputs.size()));
  std::vector<size_t> open;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].requires_grad() && !used_[i]) open.push_back(i);
  }
  if (open.empty()) return;
  std::vector<at::Tensor> roots = outputs, reached = outputs;  // an input may be an output
  roots.push_back(loss);
  for (const at::Tensor& root : roots) {
    if (root.defined() && root.requires_grad()) std::ranges::copy(leaves_of(root), std::back_inserter(reached));
  }
  for (const size_t i : open) {
    used_[i] = std::ranges::any_of(reached, [&](const at::Tensor& each) { return each.is_same(inputs[i]); });
    if (!used_[i]) unused_[i] = inputs[i].sizes().vec();
  }
}

std::optional<UsedInputs::Unused> UsedInputs::unused() const {
  for (const auto& [input, sizes] : unused_) {
    if (!used_[input]) return Unused{input, sizes};
  }
  return std::nullopt;
}

}  // namespace lockstep::parallel
