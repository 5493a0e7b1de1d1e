#include "lockstep/parallel/gradients/static_graph.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::parallel {

StaticGraph::StaticGraph(std::vector<NamedParameter> parameters)
    : parameters_(std::move(parameters)), usual_(parameters_.size()), used_(parameters_.size()) {}

void StaticGraph::begin_step() {
  std::fill(used_.begin(), used_.end(), 0);
  for (Lane& lane : lanes_) {
    lane.count.assign(parameters_.size(), 0);
    lane.parts.assign(parameters_.size(), {});
  }
}

StaticGraph::Lane& StaticGraph::lane_at(size_t lane) {
  while (lanes_.size() <= lane) {
    lanes_.push_back({.expected = {},
                      .count = std::vector<size_t>(parameters_.size()),
                      .parts = std::vector<at::Tensor>(parameters_.size())});
  }
  return lanes_[lane];
}

// A lane that had no samples in the first step is taken to be as the others.
size_t StaticGraph::expected(size_t parameter, size_t lane) const {
  if (lane >= lanes_.size() || lanes_[lane].expected.empty()) return usual_[parameter];
  return lanes_[lane].expected[parameter];
}

bool StaticGraph::expects(size_t parameter, size_t lane, size_t gradients) const {
  return known_ && expected(parameter, lane) == gradients;
}

at::Tensor StaticGraph::add(size_t parameter, size_t lane, at::Tensor gradient) {
  const c10::AutoGradMode no_grad(false);
  Lane& here = lane_at(lane);
  at::Tensor& sum = here.parts[parameter];
  sum = sum.defined() ? sum + gradient : std::move(gradient);
  const size_t count = ++here.count[parameter];
  if (!known_) return {};
  if (count > expected(parameter, lane)) {
    throw ConfigError("static_graph: ", parameters_[parameter].name, " got ",
                      count > 1 ? cat(count, " gradients") : "a gradient", " where the first step had ",
                      count - 1 > 0 ? cat(count - 1) : "none",
                      "; leave static_graph out for a model whose graph changes");
  }
  return count == expected(parameter, lane) ? std::exchange(sum, {}) : at::Tensor();
}

at::Tensor StaticGraph::rest(size_t parameter, size_t lane) {
  return std::exchange(lane_at(lane).parts[parameter], {});
}

void StaticGraph::finish(comm::Communicator& comm) {
  known_ ? check_complete() : learn(comm);
  known_ = true;
  if (std::find(usual_.begin(), usual_.end(), 0) == usual_.end()) return;
  const at::Tensor ranks = at::zeros({static_cast<int64_t>(used_.size())}, at::kDouble);
  std::copy(used_.begin(), used_.end(), ranks.mutable_data_ptr<double>());
  comm.fold({ranks}, {.label = "the gradients that a static graph keeps"})->wait();
  std::copy_n(ranks.const_data_ptr<double>(), used_.size(), used_.begin());
}

// A lane without any gradient had no samples. What is kept from before counts as one.
void StaticGraph::check_complete() const {
  for (size_t at = 0; at < lanes_.size(); ++at) {
    const std::vector<size_t>& count = lanes_[at].count;
    if (std::all_of(count.begin(), count.end(), [](size_t each) { return each == 0; })) continue;
    for (size_t i = 0; i < count.size(); ++i) {
      if (count[i] >= expected(i, at) || used_[i] > 0) continue;
      throw ConfigError("static_graph: ", parameters_[i].name, " got ", count[i] > 0 ? cat(count[i]) : "no",
                        count[i] > 1 ? " gradients" : " gradient", " where the first step had ", expected(i, at),
                        "; leave static_graph out for a model whose graph changes, and set find_unused_parameters");
    }
  }
}

// The first step's counts, of all ranks.
void StaticGraph::learn(comm::Communicator& comm) {
  const auto parameters = static_cast<int64_t>(parameters_.size());
  const at::Tensor counts = at::zeros({2, parameters}, at::kDouble);  // lanes with gradients, and their gradients
  auto* const lanes = counts.mutable_data_ptr<double>();
  for (Lane& lane : lanes_) {
    const auto is_some = [](size_t count) { return count > 0; };
    if (std::any_of(lane.count.begin(), lane.count.end(), is_some)) lane.expected = lane.count;
    for (size_t i = 0; i < lane.count.size(); ++i) {
      if (is_some(lane.count[i])) ++lanes[i];
      lanes[parameters_.size() + i] += static_cast<double>(lane.count[i]);
    }
  }
  comm.fold({counts}, {.label = "the gradients of a static graph"})->wait();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    usual_[i] = lanes[i] == 0 ? 0 : static_cast<size_t>(lanes[parameters_.size() + i] / lanes[i]);
  }
}

}  // namespace lockstep::parallel
