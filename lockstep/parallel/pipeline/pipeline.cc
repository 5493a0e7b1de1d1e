#include "lockstep/parallel/pipeline/pipeline.h"

#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/exception_text.h"
#include "lockstep/base/philox.h"
#include "lockstep/nn/checkpoint.h"
#include "lockstep/parallel/gradients/divided_weights.h"
#include "lockstep/parallel/gradients/ownership.h"
#include "lockstep/parallel/lane_errors.h"
#include "lockstep/parallel/mixed_networks.h"
#include "lockstep/parallel/model_check.h"
#include "lockstep/parallel/state_broadcast.h"
#include "lockstep/parallel/step_checks.h"

namespace lockstep::parallel {
namespace {

constexpr size_t kMostUnderWay = 16;  // messages to a stage that is behind

// That of the stage's parameters and buffers; `otherwise` where it has none.
at::Device device_of(const torch::nn::Module& stage, at::Device otherwise) {
  std::optional<at::Device> device;
  const auto add = [&](const at::Tensor& each) {
    if (!device) device = each.device();
    if (each.device() == *device) return;
    throw ConfigError("pipeline: a stage on ", device->str(), " and ", each.device().str(),
                      "; move all of its parameters and buffers to one device");
  };
  for (const at::Tensor& each : stage.parameters()) add(each);
  for (const at::Tensor& each : stage.buffers()) add(each);
  return device.value_or(otherwise);
}

}  // namespace

class Pipeline::Busy {
 public:
  explicit Busy(bool& is_busy) : is_busy_(is_busy) {
    if (is_busy) throw ConfigError("pipeline: run() or infer() within a step's function; let it return the loss alone");
    is_busy = true;
  }
  ~Busy() { is_busy_ = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  bool& is_busy_;
};

Pipeline::Pipeline(std::shared_ptr<torch::nn::Module> stage, std::shared_ptr<World> world, Forward forward,
                   PipelineOptions options)
    : stage_(std::move(stage)),
      world_(std::move(world)),
      forward_(std::move(forward)),
      options_(std::move(options)),
      gradients_(*stage_),
      generators_(*stage_),
      link_(world_->communicator(), device_of(*stage_, options_.device)) {
  say_role();
  if (!options_.replicas) return;
  comm::Communicator& replicas = options_.replicas->communicator();
  check_same_model(*stage_, {cat("stage ", world_->rank(), " of ", world_->size())}, replicas);
  broadcast_state(*stage_, replicas, 0);
  broadcast_masters(*stage_, replicas, 0);
  buffers_.emplace(*stage_);
}

// For the launcher's reports.
void Pipeline::say_role() const {
  const World* const replicas = options_.replicas.get();
  const std::string of_several =
      replicas != nullptr && replicas->size() > 1 ? cat(", pipeline ", replicas->rank(), " of ", replicas->size()) : "";
  world_->self().role.set(cat("stage ", world_->rank(), " of ", world_->size(), of_several));
}

PipelineResult Pipeline::run(const PipelineStep& step, const InputOf& input_of, const LossOf& loss_of,
                             double loss_scale) {
  return run_with(step, input_of, loss_of, {.factor = loss_scale});
}

PipelineResult Pipeline::run(const PipelineStep& step, const InputOf& input_of, const LossOf& loss_of,
                             const amp::MixedPrecision& mixed, int loss_id) {
  return run_with(step, input_of, loss_of, {.mixed = &mixed, .loss_id = loss_id});
}

PipelineResult Pipeline::run_with(const PipelineStep& step, const InputOf& input_of, const LossOf& loss_of,
                                  const LossScale& scale) {
  const Stopwatch watch;
  const Busy busy(is_busy_);
  const LaneGenerators::Kept kept(generators_);
  try {
    if (options_.as_lanes && step.lanes.size() != step.samples.size()) {
      throw ConfigError("step ", step.number, ": ", step.samples.size(), " micro-batches, and the numbers of ",
                        step.lanes.size(), " lanes; PipelineOptions::as_lanes wants one for each");
    }
    const bool has_empty = std::ranges::any_of(step.samples, [](int64_t samples) { return samples < 1; });
    if (has_empty) throw ConfigError("step ", step.number, ": a micro-batch without samples; leave it out");
    scale.check(*stage_, step.number);
    const double loss_scale = scale.now();
    check_scale(*stage_, loss_scale, step.number);
    gradients_.check_weights(*stage_, cat("step ", step.number, ", stage ", world_->rank()));
    gradients_.begin(step.number, scale.loss_id, loss_scale, options_.replicas != nullptr);
    runs_of_number_ = std::exchange(number_, step.number) == step.number ? runs_of_number_ + 1 : 0;
    const auto micro_batches = static_cast<int>(step.samples.size());
    const auto actions = actions_of(options_.schedule, world_->size(), world_->rank(), micro_batches);
    sums_.reset();
    if (options_.as_lanes) sums_.emplace(*stage_, gradients_.weights());
    Pass pass{step, input_of, loss_of, scale, loss_scale};
    pass.samples = sum_of_samples(step);
    pass.held.resize(step.samples.size());
    used_inputs_.begin();
    link_.begin(step.number, micro_batches, loss_scale);
    PipelineResult result{.loss_scale = loss_scale, .loss_id = scale.loss_id, .run = next_run()};
    int held = 0;
    for (const PipelineAction& action : actions) {
      const auto micro_batch = static_cast<size_t>(action.micro_batch);
      const auto [begin, end] = action.backward ? backward(pass, micro_batch) : forward(pass, micro_batch);
      result.spans.push_back({action, begin, end});
      held += action.backward ? -1 : 1;
      result.most_held = std::max(result.most_held, held);
    }
    check_used(step.number);
    link_.finish();
    if (sums_) sums_->finish();
    sums_.reset();
    if (options_.replicas) fold_replicas();
    gradients_.install();
    hold_masters(*stage_);
    const at::Tensor sums = at::tensor(
        {is_last() ? pass.loss : 0.0, amp::square_sum_of_gradients(gradients_.weights(), loss_scale)}, at::kDouble);
    sum(sums);
    result.loss = sums[0].item<double>();
    result.square_sum = sums[1].item<double>();
    gradients_.end(result.square_sum);
    result.marks = gradients_.marks();
    result.gradients = result.marks->gradients();
    if (any_part(gradients_.weights())) result.coverage = amp::Coverage::kLess;
    result.sent_bytes = link_.sent_bytes();
    result.waiting = static_cast<double>(link_.waited_ns()) * 1e-9;
    result.seconds = watch.seconds();
    return result;
  } catch (...) {
    link_.drop();
    gradients_.restore();
    tell_all(exception_text());
    throw;
  }
}

// The number of the global batch. Replicas compare their weights along with it.
double Pipeline::sum_of_samples(const PipelineStep& step) const {
  const auto own = std::accumulate(step.samples.begin(), step.samples.end(), int64_t{0});
  if (!options_.replicas) return static_cast<double>(own);
  const double print = fingerprint(gradients_.weights());
  const at::Tensor sums = at::tensor({static_cast<double>(own), print}, at::kDouble);
  options_.replicas->communicator().all_reduce(sums, comm::ReduceOp::kSum);
  check_same_weights(print, sums[1].item<double>(), options_.replicas->size(),
                     cat("step ", step.number, ", stage ", world_->rank()));
  return sums[0].item<double>();
}

// Throws ConfigError for a trained tensor that is no weight of the stage.
void Pipeline::check_leaves(const Pass& pass, const Tensors& roots) {
  if (options_.own_parameters || (!options_.replicas && pass.loss_scale == 1)) return;
  const at::Tensor found =
      outside_.find_trained(roots, [this](const at::Tensor& leaf) { return gradients_.has(leaf); });
  if (!found.defined()) return;
  throw ConfigError(
      "step ", pass.step.number, ": stage ", world_->rank(), " reaches a tensor of shape ", found.sizes(),
      " that is trained and is no parameter of the stage's module: ",
      options_.replicas ? "its gradient would be this replica's alone" : "its gradient would keep the loss scale",
      "; register it in the module (PipelineOptions::own_parameters allows it)");
}

void Pipeline::infer(size_t micro_batches, const InputOf& input_of, const OnOutputs& on_outputs,
                     const amp::MixedPrecision* mixed) {
  const Busy busy(is_busy_);
  constexpr int64_t kNoStep = -1;
  const c10::AutoGradMode no_grad(false);
  try {
    link_.begin(kNoStep, static_cast<int>(micro_batches), /*loss_scale=*/1);
    for (size_t i = 0; i < micro_batches; ++i) {
      Tensors inputs = is_first() ? Tensors() : link_.receive_inputs(static_cast<int>(i));
      Tensors outputs;
      try {
        if (is_first()) inputs = input_of(i);
        in_autocast(mixed, [&] {
          outputs = forward_(inputs);
          check_outputs(outputs);
          if (is_last()) on_outputs(outputs, i);
        });
      } catch (...) {
        rethrow_from(cat("micro-batch ", i, ", stage ", world_->rank()), /*samples=*/0);
      }
      if (!is_last()) link_.send_outputs(static_cast<int>(i), outputs);
      outputs.clear();
      link_.wait_below(kMostUnderWay);
    }
    link_.finish();
    world_->communicator().barrier();  // what a later stage throws, all throw
  } catch (...) {
    link_.drop();
    tell_all(exception_text());
    throw;
  }
}

// Inputs may have their samples in any dimension.
void Pipeline::check_inputs(const Tensors& inputs, int64_t samples) const {
  std::string sizes;
  for (const at::Tensor& input : inputs) {
    if (!input.defined()) continue;
    if (std::ranges::any_of(input.sizes(), [&](int64_t size) { return size == samples; })) return;
    sizes += cat(sizes.empty() ? "" : ", ", input.sizes());
  }
  if (sizes.empty()) return;
  throw ConfigError("PipelineStep::samples says ", samples, " samples, and the inputs are ", sizes,
                    "; give each micro-batch's own number (PipelineOptions::check_samples = false: it is none of their "
                    "sizes)");
}

void Pipeline::check_outputs(const Tensors& outputs) const {
  if (outputs.empty() || outputs.size() > StageLink::kMostTensors) {
    throw ConfigError("pipeline: stage ", world_->rank(), " returns ", outputs.size(), " tensors; expected 1 to ",
                      StageLink::kMostTensors);
  }
}

void Pipeline::check_used(int64_t step) const {
  if (options_.recompute) return;  // a checkpoint's outputs have a graph, whatever they are
  const auto unused = used_inputs_.unused();
  if (!unused) return;
  throw ConfigError("step ", step, ": stage ", world_->rank(), " neither uses nor returns output ", unused->input,
                    " of stage ", world_->rank() - 1, ", ", at::IntArrayRef(unused->sizes),
                    ", whose gradient would be lost; return it for a later stage, or leave it out before, or detach() "
                    "it there");
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

std::string Pipeline::place_of(const Pass& pass, size_t micro_batch) const {
  return cat("step ", pass.step.number, ", micro-batch ", micro_batch, ", stage ", world_->rank());
}

// Seeds the micro-batch's random numbers, or goes on with the states that come with its inputs, as a lane's.
void Pipeline::begin_numbers(const Pass& pass, size_t micro_batch, Tensors& inputs) {
  const auto number = static_cast<uint64_t>(pass.step.number);
  if (options_.as_lanes) {
    if (is_first()) {
      generators_.seed(kernel_seed(options_.seed, number, static_cast<uint32_t>(pass.step.lanes.at(micro_batch))));
      return;
    }
    const size_t states = generators_.states().size();
    if (inputs.size() < states) throw BugError("pipeline: a lane without the states of its random numbers");
    const auto first = inputs.end() - static_cast<int64_t>(states);
    generators_.set_states({first, inputs.end()});
    inputs.erase(first, inputs.end());
    return;
  }
  const auto stages = static_cast<size_t>(world_->size()), stage = static_cast<size_t>(world_->rank());
  const uint64_t replica = options_.replicas ? static_cast<uint64_t>(options_.replicas->rank()) : 0;
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // parts the seeds of replicas and of a step's runs
  const uint64_t seed = options_.seed + kOdd * (replica << 32 | runs_of_number_);
  generators_.seed(kernel_seed(seed, number, static_cast<uint32_t>(micro_batch * stages + stage)));
}

std::pair<int64_t, int64_t> Pipeline::forward(Pass& pass, size_t micro_batch) {
  Held& held = pass.held[micro_batch];
  const auto number = static_cast<int>(micro_batch);
  held.inputs = is_first() ? Tensors() : link_.receive_inputs(number);
  begin_numbers(pass, micro_batch, held.inputs);
  const int64_t begin = monotonic_ns();
  const c10::AutoGradMode with_grad(true);
  const uint64_t opened = amp::autocast_scopes_opened();
  try {
    if (is_first()) {
      held.inputs = pass.input_of(micro_batch);
      if (options_.check_samples) check_inputs(held.inputs, pass.step.samples[micro_batch]);
    }
    const uint64_t writes = gradients_.writes();
    const auto compute = [&] {
      held.outputs = options_.recompute ? nn::checkpoint(forward_, held.inputs, {.buffers = stage_->buffers()})
                                        : forward_(held.inputs);
      check_outputs(held.outputs);
      if (is_last()) held.loss = pass.loss_of(held.outputs, micro_batch);
    };
    in_autocast(pass.scale.mixed, compute);
    if (is_last()) check_loss(held.loss, place_of(pass, micro_batch));
    if (gradients_.writes() != writes) {
      throw ConfigError(
          "a backward() within the stage's or the loss's function; run() calls it, for the loss that is "
          "returned");
    }
    if (sums_ && micro_batch == 0) sums_->after_first_forward();
    const Tensors& roots = is_last() ? Tensors{held.loss} : held.outputs;
    const auto has_graph = [](const Tensors& tensors) {
      return std::ranges::any_of(tensors,
                                 [](const at::Tensor& each) { return each.defined() && each.requires_grad(); });
    };
    // Without inputs that need a gradient a micro-batch may leave the weights out, but not all of them.
    pass.has_graph = pass.has_graph || has_graph(roots);
    const bool may_lack = !has_graph(held.inputs) && (pass.has_graph || micro_batch + 1 < pass.step.samples.size());
    if (!has_graph(roots) && !may_lack && !gradients_.weights().empty()) {
      throw ConfigError(
          "the stage has weights that are trained, and its outputs have no graph; leave detach() and "
          "no_grad out, or freeze the weights");
    }
    if (!is_first() && has_graph(roots)) used_inputs_.note(held.inputs, held.outputs, held.loss);
    if (micro_batch == 0) {
      for (const at::Tensor& each : roots) check_autocast(*stage_, each, opened);
      check_leaves(pass, roots);
    }
  } catch (...) {
    rethrow_from(place_of(pass, micro_batch), pass.step.samples[micro_batch]);
  }
  if (!is_last()) {
    const int64_t end = monotonic_ns();
    Tensors sent = held.outputs;
    if (options_.as_lanes) {
      for (at::Tensor& state : generators_.states()) sent.push_back(std::move(state));
    }
    link_.send_outputs(number, sent);
    // The next stage only receives, as long as all forwards come first.
    if (options_.schedule == PipelineSchedule::kGPipe) link_.wait_below(kMostUnderWay);
    return {begin, end};
  }
  held.outputs.clear();  // the loss's graph has what it needs of them
  const double share = static_cast<double>(pass.step.samples[micro_batch]) / pass.samples;
  pass.loss += held.loss.detach().item<double>() * share;
  held.loss = scaled_loss(held.loss, share * pass.loss_scale);
  return {begin, monotonic_ns()};
}

std::pair<int64_t, int64_t> Pipeline::backward(Pass& pass, size_t micro_batch) {
  Held held = std::move(pass.held[micro_batch]);
  const auto number = static_cast<int>(micro_batch);
  const Tensors received = is_last() ? Tensors() : link_.receive_gradients(number, held.outputs);
  const int64_t begin = monotonic_ns();
  try {
    if (is_last()) {
      held.loss.backward();
    } else {
      Tensors roots, gradients;
      for (size_t i = 0; i < received.size(); ++i) {
        if (!received[i].defined()) continue;
        roots.push_back(held.outputs[i]);
        gradients.push_back(received[i]);
      }
      if (!roots.empty()) torch::autograd::backward(roots, gradients);
    }
    for (const at::Tensor& weight : gradients_.weights()) own_gradient(weight);
    if (sums_) sums_->after_backward();
  } catch (...) {
    rethrow_from(place_of(pass, micro_batch), pass.step.samples[micro_batch]);
  }
  const int64_t end = monotonic_ns();
  if (!is_first()) link_.send_gradients(number, held.inputs);
  return {begin, end};
}

// Sums of all replicas, whose losses have their shares of the global batch. Buffers are those of the first replica.
void Pipeline::fold_replicas() {
  comm::Communicator& comm = options_.replicas->communicator();
  try {
    gradients_.fold(comm, cat("gradients of stage ", world_->rank()));
  } catch (...) {
    rethrow_from(cat("step ", number_, ", stage ", world_->rank()), /*samples=*/0);
  }
  BufferKeeper::Taken taken;
  buffers_->mark_changed();
  buffers_->sync(comm, taken);
}

}  // namespace lockstep::parallel
