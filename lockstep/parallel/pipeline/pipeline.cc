#include "lockstep/parallel/pipeline/pipeline.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/exception_text.h"
#include "lockstep/base/philox.h"
#include "lockstep/nn/checkpoint.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/parallel/lane_errors.h"
#include "lockstep/parallel/mixed_networks.h"
#include "lockstep/parallel/state_broadcast.h"
#include "lockstep/parallel/step_checks.h"

namespace lockstep::parallel {
namespace {

std::vector<at::Tensor> trained(const torch::nn::Module& stage) {
  std::vector<at::Tensor> weights;
  for (const at::Tensor& each : stage.parameters()) {
    if (each.requires_grad()) weights.push_back(each);
  }
  return weights;
}

void check_first_layers(const std::vector<int>& first_layers, int stages, size_t layers) {
  bool rises = std::ssize(first_layers) == stages && first_layers[0] == 0;
  for (size_t i = 1; rises && i < first_layers.size(); ++i) {
    rises = first_layers[i] > first_layers[i - 1] && std::cmp_less(first_layers[i], layers);
  }
  if (rises) return;
  throw ConfigError("pipeline: the first layers of ", stages, " stages of ", layers,
                    " layers: expected as many numbers as stages, rising from 0");
}

}  // namespace

torch::nn::Sequential stage_of(const torch::nn::Sequential& net, int stages, int stage, std::vector<int> first_layers) {
  const auto children = net->named_children();
  if (first_layers.empty()) {
    std::vector<double> weights;
    for (const auto& child : children) {
      double count = 0;
      for (const at::Tensor& each : child.value()->parameters()) count += static_cast<double>(each.numel());
      weights.push_back(count);
    }
    first_layers = partition(weights, stages);
  }
  check_first_layers(first_layers, stages, children.size());
  if (stage < 0 || stage >= stages) throw ConfigError("pipeline: stage ", stage, " of ", stages);
  const auto at = static_cast<size_t>(stage);
  const size_t end = at + 1 < first_layers.size() ? static_cast<size_t>(first_layers[at + 1]) : children.size();
  torch::nn::Sequential part;
  auto layer = net->begin() + first_layers[at];
  for (auto i = static_cast<size_t>(first_layers[at]); i < end; ++i, ++layer)
    part->push_back(children[i].key(), *layer);
  return part;
}

Pipeline::Pipeline(std::shared_ptr<torch::nn::Module> stage, std::shared_ptr<World> world, Forward forward,
                   PipelineOptions options)
    : stage_(std::move(stage)),
      world_(std::move(world)),
      forward_(std::move(forward)),
      options_(std::move(options)),
      weights_(std::make_shared<amp::MarkedWeights>(trained(*stage_))),
      generators_(*stage_),
      link_(world_->communicator()) {
  for (const at::Tensor& each : stage_->parameters()) {
    if (!each.is_cpu())
      throw ConfigError("pipeline: a stage on ", each.device().str(), "; stages are on the CPU so far");
  }
  if (options_.replicas) broadcast_state(*stage_, options_.replicas->communicator(), 0);
}

PipelineResult Pipeline::run(const PipelineStep& step, const InputOf& input_of, const LossOf& loss_of,
                             double loss_scale) {
  return run_with(step, input_of, loss_of, {.factor = loss_scale});
}

PipelineResult Pipeline::run(const PipelineStep& step, const InputOf& input_of, const LossOf& loss_of,
                             const amp::MixedPrecision& mixed, int loss_id) {
  check_given(*stage_, mixed, step.number);
  return run_with(step, input_of, loss_of, {.factor = mixed.loss_scale(loss_id), .mixed = &mixed, .loss_id = loss_id});
}

PipelineResult Pipeline::run_with(const PipelineStep& step, const InputOf& input_of, const LossOf& loss_of,
                                  const Scale& scale) {
  const Stopwatch watch;
  const LaneGenerators::Kept kept(generators_);
  take_gradients_aside();
  try {
    const bool has_empty = std::ranges::any_of(step.samples, [](int64_t samples) { return samples < 1; });
    if (has_empty) throw ConfigError("step ", step.number, ": a micro-batch without samples; leave it out");
    const auto micro_batches = static_cast<int>(step.samples.size());
    const auto actions = actions_of(options_.schedule, world_->size(), world_->rank(), micro_batches);
    const at::Tensor samples =
        at::tensor({std::accumulate(step.samples.begin(), step.samples.end(), int64_t{0})}, at::kLong);
    if (options_.replicas) options_.replicas->communicator().all_reduce(samples, comm::ReduceOp::kSum);
    Pass pass{step, input_of, loss_of, scale};
    pass.samples = static_cast<double>(samples.item<int64_t>());
    pass.held.resize(step.samples.size());
    link_.begin(step.number, micro_batches);
    PipelineResult result{.loss_scale = scale.factor, .loss_id = scale.loss_id, .run = next_run()};
    int held = 0;
    for (const PipelineAction& action : actions) {
      const auto micro_batch = static_cast<size_t>(action.micro_batch);
      const auto [begin, end] = action.backward ? backward(pass, micro_batch) : forward(pass, micro_batch);
      result.spans.push_back({action, begin, end});
      held += action.backward ? -1 : 1;
      result.most_held = std::max(result.most_held, held);
    }
    link_.finish();
    if (options_.replicas) fold_replicas(step.number);
    put_gradients_back(scale.factor);
    hold_masters(*stage_);
    const at::Tensor sums = at::tensor(
        {is_last() ? pass.loss : 0.0, amp::square_sum_of_gradients(weights_->all(), scale.factor)}, at::kDouble);
    sum(sums);
    result.loss = sums[0].item<double>();
    result.square_sum = sums[1].item<double>();
    result.marks.emplace(amp::GradientMarks({weights_}));
    result.sent_bytes = link_.sent_bytes();
    result.waiting = static_cast<double>(link_.waited_ns()) * 1e-9;
    result.seconds = watch.seconds();
    return result;
  } catch (...) {
    link_.drop();
    for (const at::Tensor& weight : weights_->all()) weight.mutable_grad().reset();
    tell_all(exception_text());
    throw;
  }
}

void Pipeline::infer(size_t micro_batches, const InputOf& input_of, const OnOutputs& on_outputs,
                     const amp::MixedPrecision* mixed) {
  constexpr int64_t kNoStep = -1;
  const c10::AutoGradMode no_grad(false);
  try {
    link_.begin(kNoStep, static_cast<int>(micro_batches));
    for (size_t i = 0; i < micro_batches; ++i) {
      Tensors inputs = is_first() ? Tensors() : link_.receive_inputs(static_cast<int>(i));
      Tensors outputs;
      try {
        if (is_first()) inputs = input_of(i);
        in_autocast(mixed, [&] {
          outputs = forward_(inputs);
          if (is_last()) on_outputs(outputs, i);
        });
      } catch (...) {
        rethrow_from(cat("micro-batch ", i, ", stage ", world_->rank()), /*samples=*/0);
      }
      if (!is_last()) link_.send_outputs(static_cast<int>(i), outputs);
    }
    link_.finish();
    world_->communicator().barrier();  // what a later stage throws, all throw
  } catch (...) {
    link_.drop();
    tell_all(exception_text());
    throw;
  }
}

void Pipeline::in_autocast(const amp::MixedPrecision* mixed, const std::function<void()>& compute) {
  if (mixed == nullptr) return compute();
  const amp::AutocastScope autocast = mixed->autocast();
  compute();
}

void Pipeline::tell_all(const std::string& error) const {
  world_->communicator().abort(error);
  if (options_.replicas) options_.replicas->communicator().abort(error);
}

// The first number is summed over all ranks; the second one is equal in all replicas.
void Pipeline::sum(const at::Tensor& numbers) const {
  if (options_.replicas) options_.replicas->communicator().all_reduce(numbers[0], comm::ReduceOp::kSum);
  world_->communicator().all_reduce(numbers, comm::ReduceOp::kSum);
}

std::pair<int64_t, int64_t> Pipeline::forward(Pass& pass, size_t micro_batch) {
  Held& held = pass.held[micro_batch];
  const auto number = static_cast<int>(micro_batch);
  held.inputs = is_first() ? Tensors() : link_.receive_inputs(number);
  const auto stages = static_cast<size_t>(world_->size()), stage = static_cast<size_t>(world_->rank());
  const size_t before = options_.replicas ? static_cast<size_t>(options_.replicas->rank()) * pass.held.size() : 0;
  generators_.seed(kernel_seed(options_.seed, static_cast<uint64_t>(pass.step.number),
                               static_cast<uint32_t>((before + micro_batch) * stages + stage)));
  const std::string where = cat("step ", pass.step.number, ", micro-batch ", micro_batch, ", stage ", stage);
  const int64_t begin = monotonic_ns();
  try {
    if (is_first()) held.inputs = pass.input_of(micro_batch);
    const c10::AutoGradMode with_grad(true);
    const auto compute = [&] {
      held.outputs = options_.recompute ? nn::checkpoint(forward_, held.inputs, {.buffers = stage_->buffers()})
                                        : forward_(held.inputs);
      if (is_last()) held.loss = pass.loss_of(held.outputs, micro_batch);
    };
    in_autocast(pass.scale.mixed, compute);
  } catch (...) {
    rethrow_from(where, pass.step.samples[micro_batch]);
  }
  if (!is_last()) {
    const int64_t end = monotonic_ns();
    link_.send_outputs(number, held.outputs);
    return {begin, end};
  }
  check_loss(held.loss, where);
  held.outputs.clear();  // the loss's graph has what it needs of them
  const double share = static_cast<double>(pass.step.samples[micro_batch]) / pass.samples;
  pass.loss += held.loss.detach().item<double>() * share;
  const at::Tensor wide = held.loss.element_size() < 4 ? held.loss.to(at::kFloat) : held.loss;
  held.loss = wide * (share * pass.scale.factor);
  return {begin, monotonic_ns()};
}

std::pair<int64_t, int64_t> Pipeline::backward(Pass& pass, size_t micro_batch) {
  Held held = std::move(pass.held[micro_batch]);
  const auto number = static_cast<int>(micro_batch);
  const Tensors gradients = is_last() ? Tensors() : link_.receive_gradients(number, held.outputs);
  const int64_t begin = monotonic_ns();
  try {
    if (is_last()) {
      held.loss.backward();
    } else {
      std::erase_if(held.outputs, [](const at::Tensor& each) { return !each.requires_grad(); });
      if (!held.outputs.empty()) torch::autograd::backward(held.outputs, gradients);
    }
  } catch (...) {
    rethrow_from(cat("step ", pass.step.number, ", micro-batch ", micro_batch, ", stage ", world_->rank()),
                 pass.step.samples[micro_batch]);
  }
  const int64_t end = monotonic_ns();
  if (!is_first()) link_.send_gradients(number, held.inputs);
  return {begin, end};
}

void Pipeline::take_gradients_aside() {
  aside_.clear();
  for (const at::Tensor& weight : weights_->all()) {
    aside_.push_back(weight.grad());
    weight.mutable_grad().reset();
  }
}

// Adds what was there before, of a loss of the same scale.
void Pipeline::put_gradients_back(double loss_scale) {
  const c10::AutoGradMode no_grad(false);
  const optim::UseHeldGradients use;
  for (size_t i = 0; i < aside_.size(); ++i) {
    at::Tensor& gradient = weights_->all()[i].mutable_grad();
    if (aside_[i].defined()) {
      if (optim::loss_scale_of(aside_[i]) != loss_scale) {
        throw ConfigError("pipeline: .grad holds the gradient of a loss times ", optim::loss_scale_of(aside_[i]),
                          ", and that of one times ", loss_scale, " can't be added; zero_grad() before run()");
      }
      gradient = gradient.defined() ? gradient.add_(aside_[i]) : aside_[i];
    }
    if (gradient.defined()) optim::hold_scaled(gradient, loss_scale);
  }
  aside_.clear();
}

// Sums of all replicas, whose losses have their shares of the global batch. Buffers are those of the first replica.
void Pipeline::fold_replicas(int64_t step) {
  comm::Communicator& comm = options_.replicas->communicator();
  std::map<at::ScalarType, std::vector<at::Tensor>> by_dtype;
  for (const at::Tensor& weight : weights_->all()) {
    const at::Tensor& gradient = weight.grad();
    if (!gradient.defined() || gradient.layout() != at::kStrided) {
      throw ConfigError("pipeline: a weight of shape ", weight.sizes(), " of stage ", world_->rank(), " has ",
                        gradient.defined() ? "a sparse gradient" : "no gradient",
                        ", which replicas can't fold; freeze it, or use it in each step");
    }
    by_dtype[gradient.scalar_type()].push_back(gradient);
  }
  for (auto& [dtype, gradients] : by_dtype) {
    comm.fold(gradients, {.label = cat("gradients of stage ", world_->rank()), .step = static_cast<uint64_t>(step)})
        ->wait();
  }
  for (const at::Tensor& buffer : stage_->buffers()) broadcast_tensor(buffer, comm, 0);
}

}  // namespace lockstep::parallel
