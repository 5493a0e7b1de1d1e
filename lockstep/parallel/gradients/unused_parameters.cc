#include "lockstep/parallel/gradients/unused_parameters.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lockstep/parallel/gradients/graph_walk.h"

namespace lockstep::parallel {

UnusedParameters::UnusedParameters(std::vector<NamedParameter> parameters, bool walks)
    : parameters_(std::move(parameters)),
      walks_(walks),
      lanes_using_(parameters_.size()),
      unused_(parameters_.size()) {}

void UnusedParameters::begin_step() { std::fill(lanes_using_.begin(), lanes_using_.end(), 0); }

std::vector<size_t> UnusedParameters::unused_in(const at::Tensor& loss) {
  if (!walks_) return {};
  ++walked_;
  const std::vector<bool> used = reached_parameters({loss}, tensors_of(parameters_));
  std::vector<size_t> unused;
  for (size_t i = used.size(); i-- > 0;) {
    if (used[i]) {
      ++lanes_using_[i];
    } else {
      unused.push_back(i);
    }
  }
  return unused;
}

void UnusedParameters::finish(comm::Communicator& comm) {
  if (!walks_) return;
  const at::Tensor lanes = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kDouble);
  auto* count = lanes.mutable_data_ptr<double>();
  std::copy(lanes_using_.begin(), lanes_using_.end(), count);
  comm.fold({lanes}, {.label = "the parameters in use"})->wait();
  for (size_t i = 0; i < parameters_.size(); ++i) unused_[i] = count[i] == 0;
}

}  // namespace lockstep::parallel
