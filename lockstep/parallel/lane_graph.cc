#include "lockstep/parallel/lane_graph.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "lockstep/base/exception_text.h"
#include "lockstep/base/text.h"
#include "lockstep/parallel/loss_scale.h"

namespace lockstep::parallel {
namespace {

constexpr int kTrials = 2;       // steps that are computed as ever
constexpr int kWorth = 32;       // replays; fewer save less than a recording costs
constexpr int kRecordings = 32;  // that were not worth it

// Whoever gets the results may mark them (optim/held_gradient.h), so they are other tensors each time.
LaneOutcome outcome_of(const std::vector<at::Tensor>& results) {
  LaneOutcome outcome{.loss = results[0].detach(), .gradients = {}};
  for (size_t i = 1; i < results.size(); ++i) outcome.gradients.push_back(results[i].detach());
  return outcome;
}

}  // namespace

LaneGraph::LaneGraph(std::vector<at::Tensor> parameters, std::vector<at::Tensor> others, comm::MakeDeviceGraph make)
    : parameters_(std::move(parameters)), others_(std::move(others)), make_(std::move(make)) {
  addresses_.resize(parameters_.size() + others_.size());
}

LaneGraph::~LaneGraph() = default;

std::optional<LaneOutcome> LaneGraph::run(int64_t samples, const std::function<at::Tensor()>& loss_of, double factor) {
  if (!refusal_.empty()) return std::nullopt;
  if (samples < samples_) {  // an epoch's last
    make_room();
    return std::nullopt;
  }
  if (has_moved() || samples != samples_) forget();
  samples_ = samples;
  if (steps_ < kTrials) {
    ++steps_;
    return std::nullopt;
  }
  if (!factor_.defined()) factor_ = at::empty({}, parameters_[0].options().dtype(at::kFloat).requires_grad(false));
  factor_.fill_(factor);
  if (steps_++ == kTrials) {
    if (graph_ == nullptr) graph_ = make_();
    return outcome_of(graph_->rehearse([&] { return compute(loss_of); }));
  }
  if (!is_recorded() && !record(loss_of)) return std::nullopt;
  graph_->replay();
  ++replays_;
  return outcome_of(recorded_);
}

// Returns false if it can't be done. Weights that autocast has cast for a step before are not the recording's, and
// those that it casts within it are computed by replays alone: neither may be taken for the other.
bool LaneGraph::record(const std::function<at::Tensor()>& loss_of) {
  at::autocast::clear_cache();
  try {
    recorded_ = graph_->record([&] { return compute(loss_of); });
  } catch (...) {
    refusal_ = exception_text();
    graph_.reset();
  }
  at::autocast::clear_cache();
  return is_recorded();
}

std::vector<at::Tensor> LaneGraph::compute(const std::function<at::Tensor()>& loss_of) const {
  const at::Tensor loss = loss_of();
  std::vector<at::Tensor> results = torch::autograd::grad({scaled_loss(loss, factor_)}, parameters_);
  results.insert(results.begin(), loss.detach());
  return results;
}

// Where the tensors' memory is. Returns whether that has changed since the last call.
bool LaneGraph::has_moved() {
  bool moved = false;
  size_t place = 0;
  for (const auto* list : {&parameters_, &others_}) {
    for (const at::Tensor& each : *list) {
      const void* const now = each.const_data_ptr();
      moved = std::exchange(addresses_[place++], now) != now || moved;
    }
  }
  return moved;
}

void LaneGraph::forget() {
  const bool is_short_lived = is_recorded() && replays_ < kWorth;
  drop();
  if (!is_short_lived || ++short_lived_ < kRecordings) return;
  refusal_ = cat("the model or its batches have changed soon after each of ", kRecordings, " recordings");
  graph_.reset();
}

void LaneGraph::drop() {
  replays_ = 0;
  recorded_.clear();
  if (graph_ != nullptr) graph_->forget();
  steps_ = 0;
}

void LaneGraph::make_room() {
  if (is_recorded() && !graph_->has_room_beside()) drop();
}

}  // namespace lockstep::parallel
