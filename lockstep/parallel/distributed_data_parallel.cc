#include "lockstep/parallel/distributed_data_parallel.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/error.h"
#include "lockstep/base/exception_text.h"
#include "lockstep/base/lanes_fit.h"
#include "lockstep/base/philox.h"
#include "lockstep/base/plain_nan.h"
#include "lockstep/parallel/gradients/divided_weights.h"
#include "lockstep/parallel/lane_errors.h"
#include "lockstep/parallel/mixed_networks.h"
#include "lockstep/parallel/model_check.h"
#include "lockstep/parallel/state_broadcast.h"
#include "lockstep/parallel/step_checks.h"
#include "lockstep/parallel/step_notes.h"
#include "lockstep/parallel/threads.h"

namespace lockstep::parallel {
namespace {

// Checks that the model may be wrapped and that all ranks hold the same, before anything uses it: an earlier wrapper of
// one that is refused goes on as it was.
std::shared_ptr<torch::nn::Module> agree(std::shared_ptr<torch::nn::Module> module, const std::shared_ptr<World>& world,
                                         const DdpOptions& options) {
  comm::Communicator& comm = world->communicator();
  WrappedNetwork::check(*module);
  check_same_model(*module, options.describe(*module), comm);
  find_sync_group(*module);
  if (options.comm_hook != nullptr) options.comm_hook->attach(world, module);
  if (options.broadcast_state) {
    broadcast_state(*module, comm, 0);
    broadcast_masters(*module, comm, 0);
  }
  return module;
}

}  // namespace

DistributedDataParallel::DistributedDataParallel(std::shared_ptr<torch::nn::Module> module,
                                                 std::shared_ptr<World> world, const DdpOptions& options)
    : module_(agree(std::move(module), world, options)),
      world_(std::move(world)),
      options_(options),
      buffers_(*module_, options.broadcast_buffers),
      reducer_(named_parameters(*module_), world_->communicator(), options,
               {.begin = [this] { return begin_pass(); }, .end = [this] { end_pass(); }}),
      sync_(find_sync_group(*module_)),
      network_(world_, *module_, buffers_, sync_),
      weights_(std::make_shared<amp::MarkedWeights>(tensors_of(trainable(named_parameters(*module_))))),
      has_parts_(any_part(weights_->all())),
      generators_(*module_) {
  if (divides() && has_parts_) {
    throw ConfigError("DistributedDataParallel: the hook ", options_.comm_hook->name(),
                      " and weights that are divided among ranks (parallel/tensor): no rank would know their norm");
  }
  const bool may_record = options_.device_graph && world_->size() == 1 && sync_ == nullptr && !reducer_.has_sparse() &&
                          options_.comm_hook == nullptr && !options_.find_unused_parameters && !options_.static_graph;
  if (!may_record) return;
  std::vector<at::Tensor> others = module_->buffers();
  for (const at::Tensor& each : tensors_of(frozen(named_parameters(*module_)))) others.push_back(each);
  graph_ = std::make_unique<LaneGraph>(weights_->all(), others, options_.device_graph);
  layers_ = module_->modules();
}

DistributedDataParallel::~DistributedDataParallel() = default;

StepResult DistributedDataParallel::run(const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of,
                                        double loss_scale, double decision) {
  return run_all({this}, step, loss_of, {.factor = loss_scale}, decision);
}

StepResult DistributedDataParallel::run_together(const std::vector<DistributedDataParallel*>& networks,
                                                 const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of,
                                                 double loss_scale, double decision) {
  return run_all(networks, step, loss_of, {.factor = loss_scale}, decision);
}

StepResult DistributedDataParallel::run_all(const std::vector<DistributedDataParallel*>& networks, const StepPlan& step,
                                            const std::function<at::Tensor(size_t)>& loss_of, const LossScale& scale,
                                            double decision) {
  if (networks.empty()) throw ConfigError("run_together: no network");
  for (const auto* each : networks) {
    if (each->world_ != networks[0]->world_) throw ConfigError("run_together: the networks are of different worlds");
    if (std::count(networks.begin(), networks.end(), each) > 1) {
      throw ConfigError("run_together: a network is given twice; give each once");
    }
  }
  return networks[0]->run_with(networks, step, loss_of, scale, decision);
}

StepResult DistributedDataParallel::run_together(const std::vector<DistributedDataParallel*>& networks,
                                                 const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of,
                                                 const amp::MixedPrecision& mixed, int loss_id, double decision) {
  const auto in_autocast = [&](size_t lane) {
    const amp::AutocastScope autocast = mixed.autocast();
    return loss_of(lane);
  };
  return run_all(networks, step, in_autocast, {.mixed = &mixed, .loss_id = loss_id}, decision);
}

StepResult DistributedDataParallel::run_with(const std::vector<DistributedDataParallel*>& networks,
                                             const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of,
                                             const LossScale& scale, double decision) {
  for (const auto* each : networks) each->check_usable("run");
  auto& comm = world_->communicator();
  const LaneGenerators::Kept kept(generators_);
  try {
    check_plan(step);
    for (const auto* each : networks) scale.check(*each->module_, step.number + each->options_.first_step);
    const double loss_scale = scale.now();
    if (!options_.keep_threads) choose_threads(static_cast<int>(step.lanes.size()) * world_->size());
    begin_step(networks, step, loss_scale, scale.loss_id);
    StepNotes own;
    (world_->rank() == 0 ? own.decision : own.others) = decision;
    for (const auto* each : stepped_) {
      if (!each->options_.broadcast_state) continue;
      own.weights += fingerprint(each->weights_->all());
      own.modes += modes_of(*each->module_);
    }
    const LateNumber loss = run_lanes(step, loss_of, loss_scale);
    const bool waits = comm.size() > 1 || loss.is_there();
    own.loss = waits ? double{loss} : 0;
    own.lanes = static_cast<double>(step.lanes.size());
    for (const auto& lane : step.lanes) {
      own.samples += static_cast<double>(lane.samples);
      own.numbers += number_hash(lane.index);
    }
    const std::vector<std::string> unfolded = unfolded_gradients();
    own.unfolded = hash_of(unfolded);
    own.order = order_note(step.order_hash);
    NotesFold notes(own, step.number + options_.first_step, comm);
    StepResult result{.loss_scale = loss_scale, .loss_id = scale.loss_id, .run = next_run()};
    std::vector<LateNumber> squares;
    std::vector<std::shared_ptr<const amp::MarkedWeights>> weights;
    for (auto* each : stepped_) {
      each->reducer_.finish();
      each->network_.set_unfolded(false);
      add_to_board(each->comm_log(), world_->self());
      squares.push_back(each->reducer_.square_sum());
      weights.push_back(each->weights_);
      if (each->has_parts_) result.coverage = amp::Coverage::kLess;
    }
    const StepNotes sum = notes.wait();
    check_notes(sum, own, step.samples, unfolded, name_of(step), comm);
    BufferKeeper::Taken taken;
    for (const auto* each : present_) {
      each->buffers().end_step();
      each->buffers().sync(comm, taken);
    }
    for (auto* each : stepped_) {
      hold_masters(*each->module_);
      each->has_run_ = true;
    }
    if (divides()) drop_gradients_of_others();
    result.marks.emplace(std::move(weights));
    result.gradients = result.marks->gradients();
    result.loss = waits ? LateNumber(plain_nan(sum.loss)) : LateNumber([loss] { return plain_nan(loss); });
    const auto all_squares = [squares, world = world_] { return std::accumulate(squares.begin(), squares.end(), 0.); };
    result.square_sum = waits ? LateNumber(all_squares()) : LateNumber(all_squares);
    if (!waits && loss_scale != 1 && stepped_.size() == 1) result.overflow = reducer_.overflow();
    if (divides()) add_verdicts(result);
    std::unordered_set<const c10::TensorImpl*> passed_by;
    for (const auto* each : present_) {
      if (!is_stepped(*each)) each->add_reached(passed_by);
    }
    if (!passed_by.empty()) result.passed_by = std::make_shared<const decltype(passed_by)>(std::move(passed_by));
    end_step();
    ++runs_of_number_;
    result.decision = sum.decision;
    result.others = sum.others;
    return result;
  } catch (...) {
    for (auto* each : networks) each->reducer_.drop();
    for (const auto* each : present_) each->buffers().restore();
    end_step();
    comm.abort(exception_text());
    throw;
  }
}

void DistributedDataParallel::check_plan(const StepPlan& step) const {
  if (step.lanes.empty()) throw ConfigError(name_of(step), ": rank ", world_->rank(), " has no lanes");
  if (step.samples < 1) {
    throw ConfigError(name_of(step), ": a global batch of ", step.samples, " samples; leave the step out");
  }
  const int count = static_cast<int>(step.lanes.size());
  bool is_own = lanes_fit(count * world_->size(), world_->size());
  for (int i = 0; i < count; ++i) {
    const StepPlan::Lane& lane = step.lanes[static_cast<size_t>(i)];
    if (lane.samples < 0) throw ConfigError(name_of(step), ": lane ", lane.index, " has ", lane.samples, " samples");
    is_own = is_own && lane.index == world_->rank() * count + i;
  }
  if (is_own) return;
  throw ConfigError(name_of(step), ": rank ", world_->rank(), " of ", world_->size(), " has ", count,
                    " lanes from number ", step.lanes[0].index,
                    " on; a rank's lanes follow each other, those of rank 0 first, a power of two on each, as "
                    "World::own_lanes() gives them: otherwise the sums' order would depend on the number of ranks");
}

std::string DistributedDataParallel::name_of(const StepPlan& step) const {
  return cat("step ", step.number + options_.first_step);
}

// The hooks of a module that is wrapped anew are the later wrapper's, and a step within a step would end the outer one.
void DistributedDataParallel::check_usable(const char* call) const {
  if (!network_.is_registered()) {
    throw ConfigError("DistributedDataParallel: ", call,
                      "(): the module has been wrapped anew since; use that wrapper");
  }
  const auto all = network_.all();
  if (std::none_of(all.begin(), all.end(), [](const auto* each) { return each->is_in_step(); })) return;
  throw ConfigError("DistributedDataParallel: ", call,
                    "() within the function of a step; return the sum of all losses "
                    "from it, or call this after the step");
}

// By names and the numbers of their networks, which are the same on all ranks.
std::vector<std::string> DistributedDataParallel::unfolded_gradients() const {
  std::vector<std::string> names;
  for (const auto* each : stepped_) {
    const std::string network = stepped_.size() > 1 ? cat(" of network ", each->network_.number()) : "";
    for (const auto& name : each->reducer_.local_gradients()) names.push_back(name + network);
  }
  return names;
}

// Other networks that take part are not stepped: they get no gradients, and their buffers follow the lanes.
void DistributedDataParallel::begin_step(const std::vector<DistributedDataParallel*>& networks, const StepPlan& step,
                                         double loss_scale, int loss_id) {
  const size_t lanes = step.lanes.size();
  if (std::exchange(number_, step.number) != step.number) runs_of_number_ = 0;
  stepped_ = networks;
  present_ = network_.all();
  in_function_.assign(lanes, false);
  BufferKeeper::Taken taken;
  for (auto* each : present_) {
    each->buffers().begin_step(world_->communicator(), taken);
    if (each->sync() != nullptr && each->sync() != sync_) each->sync()->close(lanes > 1);
    if (!is_stepped(*each)) each->set_gradients_aside();
    each->set_in_step(true);
  }
  if (!std::ranges::all_of(stepped_, [&](const auto* each) { return each->divides() == divides(); })) {
    throw ConfigError(name_of(step), ": networks that run together push to parameter servers all, or none does");
  }
  for (auto* each : stepped_) {
    check_scale(*each->module_, loss_scale, step.number + options_.first_step);
    each->network_.check_parameters();
    each->reducer_.begin_step(lanes, {.delayed = stepped_.size() > 1,
                                      .loss_scale = loss_scale,
                                      .loss_id = loss_id,
                                      .number = step.number + options_.first_step});
  }
}

void DistributedDataParallel::end_step() noexcept {
  for (auto* each : present_) {
    each->set_in_step(false);
    if (each->sync() != nullptr) each->sync()->close(false);
    if (!is_stepped(*each)) each->put_gradients_back();
  }
  present_.clear();
  stepped_.clear();
}

bool DistributedDataParallel::is_stepped(const WrappedNetwork& network) const {
  return std::any_of(stepped_.begin(), stepped_.end(), [&](const auto* each) { return &each->network_ == &network; });
}

// Runs all of this rank's lanes. Returns their share of the global batch's mean loss.
LateNumber DistributedDataParallel::run_lanes(const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of,
                                              double loss_scale) {
  if (sync_ != nullptr) return run_by_turns(step, loss_of, loss_scale);
  std::vector<LaneLoss> losses;
  for (size_t i = 0; i < step.lanes.size(); ++i) losses.push_back(run_lane(step, i, loss_of, loss_scale));
  return sum_of(losses);
}

// The same with SyncBatchNorm: this rank's lanes take turns at each of its layers.
LateNumber DistributedDataParallel::run_by_turns(const StepPlan& step, const std::function<at::Tensor(size_t)>& loss_of,
                                                 double loss_scale) {
  std::vector<LaneLoss> losses(step.lanes.size());
  std::vector<size_t> filled, empty;
  for (size_t i = 0; i < step.lanes.size(); ++i) (step.lanes[i].samples > 0 ? filled : empty).push_back(i);
  const auto run_empty = [&] {
    for (const size_t lane : empty) run_lane(step, lane, loss_of, loss_scale);
  };
  // Where a rank has no samples, all fold after all exchanges: every rank calls the two communicators in one order.
  const auto fold_late = [&] { std::ranges::for_each(stepped_, [](auto* each) { each->reducer_.delay(); }); };
  if (!filled.empty()) run_empty();
  generators_.begin_turns(filled.size());
  const auto run_one = [&](size_t lane) {
    if (sync_->has_idle_ranks()) fold_late();
    const amp::CastCacheScope one_cast_a_weight;
    losses[lane] = run_lane(step, lane, loss_of, loss_scale);
  };
  sync_->run(step.lanes.size(), filled, module_->parameters()[0].device(), run_one,
             [&](size_t from, size_t to) { switch_lane(filled, from, to); });
  if (filled.empty()) {
    fold_late();
    run_empty();
  }
  return sum_of(losses);
}

// The state of a lane that is not its thread's is saved and restored as the turn passes.
void DistributedDataParallel::switch_lane(const std::vector<size_t>& lanes, size_t from, size_t to) {
  if (lanes.size() < 2) return;
  if (from != LaneTurns::kNone) {
    generators_.leave(from);
    for (const auto* each : present_) each->buffers().leave(from);
  }
  if (to == LaneTurns::kNone) return;
  set_in_function(lanes[to], in_function_[lanes[to]]);
  for (auto* each : stepped_) each->reducer_.set_lane(lanes[to]);
  if (!generators_.enter(to)) return;  // the lane begins
  for (const auto* each : present_) each->buffers().enter(to);
}

void DistributedDataParallel::set_in_function(size_t lane, bool in_function) {
  in_function_[lane] = in_function;
  for (auto* each : present_) each->set_in_function(in_function);
}

// A step's first loss, of one network and one lane. Also notices what a recording does not follow: layers that have
// changed between training and evaluation.
bool DistributedDataParallel::may_record(const StepPlan& step) {
  if (graph_ == nullptr || runs_of_number_ > 0) return false;
  std::vector<bool> training;
  for (const auto& each : layers_) training.push_back(each->is_training());
  if (training != std::exchange(training_, training)) graph_->forget();
  return step.lanes.size() == 1 && present_.size() == 1;
}

// Nobody folds the gradient of a trained tensor that no wrapped network has, or takes the loss scale out of it.
void DistributedDataParallel::check_leaves(const StepPlan& step, const at::Tensor& loss, double loss_scale) {
  if (options_.own_parameters || (world_->size() == 1 && loss_scale == 1)) return;
  const at::Tensor trained = outside_.find_trained({loss}, is_wrapped);
  if (!trained.defined()) return;
  const std::string left = world_->size() > 1 ? "its gradient would be this rank's alone"
                                              : cat("its gradient would keep the loss scale of ", loss_scale);
  throw ConfigError(name_of(step), ": the loss reaches a tensor of shape ", trained.sizes(),
                    " that is trained and is no parameter of a wrapped network: ", left,
                    "; wrap its module too (run_together), or register it in the network. An input that needs a "
                    "gradient is to be a new tensor each time (DdpOptions::own_parameters allows it)");
}

LaneLoss DistributedDataParallel::run_lane(const StepPlan& step, size_t lane,
                                           const std::function<at::Tensor(size_t)>& loss_of, double loss_scale) {
  const auto [index, samples] = step.lanes[lane];
  for (auto* each : stepped_) each->reducer_.set_lane(lane);
  if (samples == 0) {
    for (auto* each : stepped_) each->reducer_.empty_lane();
    return {};
  }
  const double weight = static_cast<double>(samples) / static_cast<double>(step.samples);
  // Each network draws its own, and each loss of a step.
  const uint64_t seed =
      options_.seed ^ (network_.number() * 0x9e3779b97f4a7c15) ^ (runs_of_number_ * 0xbf58476d1ce4e5b9);
  const uint64_t own_seed = kernel_seed(seed, static_cast<uint64_t>(step.number), static_cast<uint32_t>(index));
  generators_.seed(own_seed);
  if (lane > 0) {
    for (const auto* each : present_) each->buffers().begin_lane();
  }
  const double factor = weight * loss_scale;
  const auto compute = [&, lane = lane, index = index] {
    const uint64_t scopes = amp::autocast_scopes_opened();
    set_in_function(lane, true);
    at::Tensor loss = loss_of(lane);
    set_in_function(lane, false);
    check_loss(loss, cat(name_of(step), ", lane ", index));
    if (lane == 0) {
      for (const auto* each : stepped_) check_autocast(*each->module_, loss, scopes);
    }
    return loss;
  };
  at::Tensor loss;
  try {
    const bool may = may_record(step);
    auto recorded = may ? graph_->run(samples, compute, factor) : std::nullopt;
    if (recorded) {
      loss = std::move(recorded->loss);
      reducer_.give(recorded->gradients);
    } else {
      if (may) generators_.seed(own_seed);  // a recording that was refused has drawn as well
      loss = compute();
      if (lane == 0) check_leaves(step, loss, loss_scale);
      for (auto* each : stepped_) each->reducer_.expect(loss);
      (factor == 1 ? loss : scaled_loss(loss, factor)).backward();
    }
  } catch (...) {
    rethrow_from_lane(step.number + options_.first_step, index, samples);
  }
  for (auto* each : stepped_) each->reducer_.end_lane();
  for (const auto* each : present_) each->buffers().end_lane(index, lane);
  return {.weight = weight, .value = loss.detach()};
}

bool DistributedDataParallel::same_bits() const {
  return world_->communicator().same_bits() && (options_.comm_hook == nullptr || options_.comm_hook->same_bits());
}

}  // namespace lockstep::parallel
