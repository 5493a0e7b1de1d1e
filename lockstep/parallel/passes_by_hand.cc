// Backward passes by hand, without run(): each is folded by itself.
#include <ATen/ops/full.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/exception_text.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/parallel/mixed_networks.h"
#include "lockstep/parallel/state_broadcast.h"
#include "lockstep/parallel/step_checks.h"

namespace lockstep::parallel {

void DistributedDataParallel::backward(const at::Tensor& loss) {
  check_usable("backward");
  try {
    check_loss(loss, cat("rank ", world_->rank()));
    const auto settings = begin_pass();
    if (!settings) return loss.backward();
    reducer_.begin_pass(*settings);
    reducer_.expect(loss);
    loss.backward();
    reducer_.finish_pass();
  } catch (...) {
    reducer_.drop();
    world_->communicator().abort(exception_text());
    throw;
  }
}

// Returns nothing under no_sync(). A collective in join().
std::optional<PassSettings> DistributedDataParallel::begin_pass() {
  if (network_.is_set_aside()) {  // in a step of others
    if (!network_.is_in_function()) return std::nullopt;
    throw ConfigError("a backward pass through network ", network_.number(),
                      ", which is not stepped, within the function of a step; return the sum of all losses from it, "
                      "or call it after the step");
  }
  if (divides()) {
    throw ConfigError(
        "a backward pass by hand with the hook '", options_.comm_hook->name(),
        "', after which each rank has some gradients alone; call run(), whose result has the norm and the "
        "verdict of all");
  }
  for (auto* each : network_.all()) each->buffers().mark_changed();  // a frozen one may take part
  if (no_sync_ > 0) {
    network_.set_unfolded(true);
    return std::nullopt;
  }
  network_.check_parameters();
  double ranks = world_->size();
  if (joining_ != nullptr) {
    const double going = ranks_going_on(true);
    if (going < ranks && joining_->throw_on_early_termination) {
      throw ConfigError("a rank has run out of data after ", passes_, " steps of rank ", world_->rank(),
                        "; give all ranks the same number of batches, or leave throw_on_early_termination out");
    }
    if (!joining_->divide_by_initial_world_size) ranks = going;
    ++passes_;
  }
  const bool ranks_differ = options_.find_unused_parameters || options_.static_graph;
  return PassSettings{.scale = options_.gradient_average ? 1 / ranks : 1,
                      .delayed = ranks_differ && network_.all().size() > 1,
                      .order = network_.number()};
}

void DistributedDataParallel::end_pass() {
  network_.set_unfolded(false);
  add_to_board(comm_log(), world_->self());
  if (joining_ != nullptr) return;  // join() ends with those of the longest rank
  BufferKeeper::Taken taken;
  for (auto* each : network_.all()) each->buffers().sync_after_pass(world_->communicator(), taken);
}

void DistributedDataParallel::join(const std::function<void()>& loop, const JoinOptions& options) {
  if (sync_ != nullptr) {
    throw ConfigError(
        "join: ranks that have run out of data can't take part in SyncBatchNorm; give all ranks the same "
        "number of batches, or use plain BatchNorm");
  }
  check_usable("join");
  passes_ = 0;
  network_.set_unfolded(false);
  joining_ = &options;
  try {
    loop();
    if (network_.is_unfolded()) {
      throw ConfigError("join: the loop ended within no_sync(), before the backward that folds; give it one");
    }
    follow_the_others(options);
  } catch (...) {
    joining_ = nullptr;
    world_->communicator().abort(exception_text());
    throw;
  }
  joining_ = nullptr;
}

// Returns how many ranks have data for the next fold. A collective.
double DistributedDataParallel::ranks_going_on(bool self) const {
  const at::Tensor going = at::full({1}, self ? 1.0 : 0.0, at::kDouble);
  world_->communicator().all_reduce(going, comm::ReduceOp::kSum);
  return going.item<double>();
}

void DistributedDataParallel::follow_the_others(const JoinOptions& options) {
  for (double going = ranks_going_on(false); going > 0; going = ranks_going_on(false)) {
    if (options.throw_on_early_termination) {
      throw ConfigError("rank ", world_->rank(), " has run out of data after ", passes_,
                        " steps, others go on; give "
                        "all ranks the same number of batches, or leave throw_on_early_termination out");
    }
    reducer_.begin_pass({});
    reducer_.empty_lane();
    reducer_.finish_pass();
    buffers_.mark_changed();
  }
  const at::Tensor passes = world_->communicator().all_gather(at::full({1}, passes_, at::kLong));
  const auto* first = passes.const_data_ptr<int64_t>();
  const int longest = static_cast<int>(std::max_element(first, first + world_->size()) - first);
  broadcast_state(*module_, world_->communicator(), longest);
  broadcast_masters(*module_, world_->communicator(), longest);
}

}  // namespace lockstep::parallel
