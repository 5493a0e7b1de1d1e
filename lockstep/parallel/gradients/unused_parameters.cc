#include "lockstep/parallel/gradients/unused_parameters.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/parallel/gradients/graph_walk.h"

namespace lockstep::parallel {

UnusedParameters::UnusedParameters(std::vector<NamedParameter> parameters, const Options& options)
    : parameters_(std::move(parameters)),
      options_(options),
      lanes_using_(parameters_.size()),
      unused_(parameters_.size()) {}

void UnusedParameters::begin_step() { std::fill(lanes_using_.begin(), lanes_using_.end(), 0); }

std::vector<size_t> UnusedParameters::unused_in(const at::Tensor& loss, size_t lane) {
  if (!options_.find_unused_parameters && !options_.static_graph) return {};
  const std::vector<bool> used = used_in(loss, lane);
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

std::vector<bool> UnusedParameters::used_in(const at::Tensor& loss, size_t lane) {
  std::vector<bool> used;
  if (known_) {
    for (size_t i = 0; i < parameters_.size(); ++i) used.push_back(used_at_first(i, lane));
    return used;
  }
  used = reached_parameters({loss}, tensors_of(parameters_));
  if (options_.static_graph) {
    first_usage_.resize(std::max(first_usage_.size(), lane + 1));
    first_usage_[lane] = used;
  }
  return used;
}

// A lane that had no samples in the first step is taken to use all that some lane did.
bool UnusedParameters::used_at_first(size_t parameter, size_t lane) const {
  if (lane >= first_usage_.size() || first_usage_[lane].empty()) return !unused_[parameter];
  return first_usage_[lane][parameter];
}

void UnusedParameters::check_gradient(size_t parameter, size_t lane) const {
  if (!known_ || used_at_first(parameter, lane)) return;
  throw ConfigError("static_graph: ", parameters_[parameter].name,
                    " got a gradient that it did not get in the first step; "
                    "leave static_graph out for a model whose graph changes");
}

void UnusedParameters::finish(comm::Communicator& comm) {
  if (!walks()) return;
  const at::Tensor lanes = at::zeros({static_cast<int64_t>(parameters_.size())}, at::kDouble);
  auto* count = lanes.mutable_data_ptr<double>();
  std::copy(lanes_using_.begin(), lanes_using_.end(), count);
  comm.fold({lanes}, {.label = "the parameters in use"})->wait();
  for (size_t i = 0; i < parameters_.size(); ++i) unused_[i] = count[i] == 0;
  known_ = options_.static_graph;
}

}  // namespace lockstep::parallel
