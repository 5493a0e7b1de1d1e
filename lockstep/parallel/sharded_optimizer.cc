#include "lockstep/parallel/sharded_optimizer.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/exception_text.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/optim/memory_order.h"
#include "lockstep/parallel/shard_plan.h"

namespace lockstep::parallel {
namespace {

constexpr int kOwner = 0;  // the rank whose memory holds shared weights; any rank would do

void check_parameter(std::string_view optimizer, const at::Tensor& parameter, at::Device device,
                     const comm::Communicator& comm) {
  if (parameter.layout() != at::kStrided || !parameter.is_non_overlapping_and_dense()) {
    throw ConfigError("sharded ", optimizer, ": a parameter of shape ", parameter.sizes(), " is ", parameter.toString(),
                      " with strides ", parameter.strides(), "; it must lie in memory without gaps");
  }
  if (parameter.device() != device) {
    throw ConfigError("sharded ", optimizer, ": parameters on ", device, " and on ", parameter.device(),
                      "; it takes those of one device");
  }
  if (!device.is_cpu() && comm.size() > 1 && !comm.shares(parameter)) {
    throw ConfigError("sharded ", optimizer, ": parameters on ", device, ", and backend ", comm.backend(),
                      " moves CPU memory; use --backend nccl, or the whole optimizer");
  }
}

at::Tensor bytes_of(const at::Tensor& row) { return row.view(at::kByte); }

}  // namespace

ShardedOptimizer::ShardedOptimizer(std::unique_ptr<optim::FusedOptimizer> whole, comm::Communicator& comm,
                                   const std::vector<int>& owners)
    : comm_(comm), has_owners_(!owners.empty()) {
  if (!whole->elementwise()) {
    throw ConfigError(whole->name(), " can't be sharded: its elements depend on each other; use it whole");
  }
  if (whole->keeps_average()) throw BugError("sharded ", whole->name(), ": made of one that keeps an average");
  std::vector<int64_t> elements;
  for (size_t g = 0; g < whole->param_groups().size(); ++g) {
    for (const at::Tensor& parameter : whole->param_groups()[g].params()) {
      const at::Tensor& first = shards_.empty() ? parameter : shards_.front().parameter;
      check_parameter(whole->name(), parameter, first.device(), comm);
      shards_.push_back({parameter, g, {}, {}});
      elements.push_back(parameter.numel());
    }
  }
  if (has_owners_) check_owners("ShardedOptimizer", owners, comm);
  if (has_owners_ && owners.size() != shards_.size()) {
    throw ConfigError("sharded ", whole->name(), ": ", owners.size(), " owners of ", shards_.size(),
                      " parameters; one that has several names is one");
  }
  auto plan = owners.empty() ? plan_shards(elements, comm.size()) : plan_owners(elements, owners, comm.size());
  for (size_t i = 0; i < shards_.size(); ++i) shards_[i].bounds = std::move(plan[i]);
  const c10::AutoGradMode no_grad(false);
  share_weights();
  cut_slices(*whole);
  take_state(*whole);
}

std::vector<at::Tensor> ShardedOptimizer::all_parameters() const {
  std::vector<at::Tensor> all;
  for (const Shard& shard : shards_) all.push_back(shard.parameter);
  return all;
}

void ShardedOptimizer::follow_parameters() {
  if (has_stepped()) throw ConfigError(name(), ": the parameters are cast before the first step, not after it");
  const c10::AutoGradMode no_grad(false);
  share_weights();
  cut_slices(*slices_);
  if (average_decay_) slices_->keep_average(*average_decay_);
}

void ShardedOptimizer::keep_average(double decay) {
  slices_->keep_average(decay);
  average_decay_ = decay;
}

// Gives all ranks the owner's weights: its memory, or a copy.
void ShardedOptimizer::share_weights() {
  std::vector<at::Tensor> mine;
  for (Shard& shard : shards_) {
    at::Tensor& parameter = shard.parameter;
    // The owner has made this weight before the pool was there.
    if (comm_.rank() == kOwner && !comm_.shares(parameter)) {
      parameter.set_data(at::empty_like(parameter).copy_(parameter));
    }
    mine.push_back(parameter.detach());
  }
  mine.push_back(at::zeros({comm_.size(), std::ssize(shards_)}, at::kByte));
  const std::vector<at::Tensor> views = comm_.views_of(kOwner, mine);
  shared_ = !views.empty();
  if (shared_) written_ = views.back();
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (!shared_) {
      comm_.broadcast(mine[i], kOwner);
    } else if (comm_.rank() != kOwner) {
      shards_[i].parameter.set_data(views[i]);
    }
  }
}

void ShardedOptimizer::cut_slices(const optim::FusedOptimizer& whole) {
  std::vector<std::vector<at::Tensor>> slices;
  size_t number = 0;
  for (const auto& group : whole.param_groups()) {
    std::vector<at::Tensor>& own = slices.emplace_back();
    for (size_t p = 0; p < group.params().size(); ++p, ++number) {
      Shard& shard = shards_[number];
      shard.slice = slice_of(shard, shard.parameter);
      shard.memory = shard.parameter.const_data_ptr();
      own.push_back(shard.slice);
    }
  }
  slices_ = whole.over(slices);
}

void ShardedOptimizer::take_state(const optim::FusedOptimizer& whole) {
  const std::vector<at::Tensor> masters = whole.masters();
  if (!masters.empty()) slices_->keep_masters();
  load_state_dict(whole.state_dict());
  for (const at::Tensor& master : masters) {
    if (master.defined()) comm_.broadcast(master, kOwner);
  }
  if (!masters.empty()) load_masters(masters);
}

at::Tensor ShardedOptimizer::slice_of(const Shard& shard, const at::Tensor& laid_out) const {
  const auto rank = static_cast<size_t>(comm_.rank());
  const int64_t first = shard.bounds[rank];
  return optim::memory_of(laid_out).narrow(0, first, shard.bounds[rank + 1] - first);
}

void ShardedOptimizer::update(const optim::Update& update) {
  try {
    update_slices(update);
  } catch (const std::exception&) {
    comm_.abort(exception_text());  // others wait for this rank, and the weights are half written
    throw;
  }
}

void ShardedOptimizer::check_memory() const {
  for (const Shard& shard : shards_) {
    if (shard.parameter.const_data_ptr() == shard.memory && shard.parameter.dtype() == shard.slice.dtype()) continue;
    throw ConfigError(
        "sharded ", name(), ": a parameter of shape ", shard.parameter.sizes(),
        " has other memory than when the optimizer was made, so that its updates would not reach it: "
        "torch::load, to() and set_data() give it such; load by loop::load_weights or copy_(), or make the "
        "optimizer afterwards");
  }
}

void ShardedOptimizer::update_slices(const optim::Update& update) {
  optim::check_own_weights(*this, "an update");
  const c10::AutoGradMode no_grad(false);
  const optim::UseHeldGradients use;
  for (const Shard& shard : shards_) {
    if (!shard.parameter.grad().defined()) {
      if (has_owners_ && shard.parameter.requires_grad() && shard.slice.numel() > 0) {
        throw ConfigError("sharded ", name(), ": this rank keeps a parameter of shape ", shard.parameter.sizes(),
                          " and has no gradient of it; each of an owner's parameters has one at each update, and "
                          "push_hook() and the optimizer have the same owners");
      }
      continue;
    }
    optim::check_held(name(), shard.parameter.grad(), update.loss_scale, has_owners_);
    slices_->check_sparse(shard.group, shard.parameter);
  }
  begin_writing();
  for (const Shard& shard : shards_) {
    if (shard.parameter.grad().defined()) {
      shard.slice.mutable_grad() = slice_of(shard, optim::gradient_for(name(), shard.parameter));
    } else if (has_owners_ && shard.parameter.requires_grad() && shard.slice.numel() == 0) {
      shard.slice.mutable_grad() = at::empty_like(shard.slice);  // its owner has one: the step counts here, too
    }
  }
  slices_->update(update);
  for (const Shard& shard : shards_) shard.slice.mutable_grad().reset();  // its memory is the parameter's gradient's
  end_writing();
}

void ShardedOptimizer::tell_writes() {
  versions_.resize(shards_.size());
  auto* row = written_.mutable_data_ptr<uint8_t>() + comm_.rank() * std::ssize(shards_);
  for (size_t i = 0; i < shards_.size(); ++i) row[i] = shards_[i].parameter._version() != versions_[i] ? 1 : 0;
}

// What another rank has written counts as written here, so that this rank's masters follow it.
void ShardedOptimizer::follow_writes() {
  const auto* rows = written_.const_data_ptr<uint8_t>();
  const size_t count = shards_.size(), all = count * static_cast<size_t>(comm_.size());
  const size_t own = count * static_cast<size_t>(comm_.rank());
  for (size_t at = 0; at < all; ++at) {
    if (at - own < count || rows[at] == 0) continue;
    shards_[at % count].parameter.unsafeGetTensorImpl()->bump_version();
  }
}

void ShardedOptimizer::begin_writing() {
  check_memory();
  if (!shared_) return;
  tell_writes();
  comm_.barrier();
  follow_writes();
}

void ShardedOptimizer::end_writing() {
  if (shared_) {
    comm_.barrier();
    for (size_t i = 0; i < shards_.size(); ++i) versions_[i] = shards_[i].parameter._version();
  } else {
    gather_weights();
  }
  at::autocast::clear_cache();
}

// Each rank sends all its slices to all ranks in one message of bytes.
void ShardedOptimizer::gather_weights() {
  std::vector<at::Tensor> own;
  std::vector<int64_t> counts(static_cast<size_t>(comm_.size()), 0);
  for (const Shard& shard : shards_) {
    own.push_back(bytes_of(shard.slice));
    const auto element = static_cast<int64_t>(shard.slice.element_size());
    for (size_t r = 0; r < counts.size(); ++r) counts[r] += (shard.bounds[r + 1] - shard.bounds[r]) * element;
  }
  const at::Tensor mine = at::cat(own);
  int64_t at = 0;
  for (const int64_t count : counts) at += count;
  const at::Tensor all = at::empty({at}, mine.options());
  comm_.start(comm::calls::all_gather_uneven(mine, all, counts))->wait();
  at = 0;
  for (size_t r = 0; r < counts.size(); ++r) {
    for (const Shard& shard : shards_) {
      const at::Tensor memory = optim::memory_of(shard.parameter);
      const int64_t first = shard.bounds[r], count = shard.bounds[r + 1] - first;
      const int64_t bytes = count * static_cast<int64_t>(memory.element_size());
      if (static_cast<int>(r) != comm_.rank()) bytes_of(memory.narrow(0, first, count)).copy_(all.narrow(0, at, bytes));
      at += bytes;
    }
  }
}

}  // namespace lockstep::parallel
