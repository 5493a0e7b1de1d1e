// A sharded optimizer's state, masters and averages: gathered where they are saved, and scattered as they are loaded.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/optim/memory_order.h"
#include "lockstep/optim/positions.h"
#include "lockstep/parallel/sharded_optimizer.h"

namespace lockstep::parallel {
namespace {

// Allocates CPU memory outside of the pool, which would keep it for the rest of the run.
at::Tensor passing_like(const at::Tensor& model, at::TensorOptions options) {
  if (!options.device().is_cpu()) return at::empty_strided(model.sizes(), model.strides(), options);
  const auto bytes = static_cast<size_t>(model.numel()) * options.dtype().itemsize();
  return at::from_blob(
      new std::byte[bytes], model.sizes(), model.strides(), [](void* data) { delete[] static_cast<std::byte*>(data); },
      options);
}

}  // namespace

// Puts together on the rank `root` all ranks' slices of a tensor that is laid out as the parameter. Undefined
// elsewhere.
at::Tensor ShardedOptimizer::gathered_on(int root, const Shard& shard, const at::Tensor& slice) const {
  std::vector<int64_t> send(static_cast<size_t>(comm_.size()), 0), receive = send;
  send[static_cast<size_t>(root)] = slice.numel();
  at::Tensor whole, row = at::empty({0}, slice.options());
  if (comm_.rank() == root) {
    whole = passing_like(shard.parameter, slice.options());
    row = optim::memory_of(whole);
    for (size_t r = 0; r < receive.size(); ++r) receive[r] = shard.bounds[r + 1] - shard.bounds[r];
  }
  comm_.start(comm::calls::all_to_all_uneven(slice, row, send, receive))->wait();
  return whole.defined() ? whole.cpu() : whole;  // all of them would not fit on a device that sharding has made room on
}

// Undefined on ranks that don't gather.
at::Tensor ShardedOptimizer::gathered(const Shard& shard, const at::Tensor& slice) const {
  at::Tensor own;
  for (const int root : gathered_on_) {
    const at::Tensor whole = gathered_on(root, shard, slice);
    if (whole.defined()) own = whole;
  }
  return own;
}

void ShardedOptimizer::gather_on(std::vector<int> ranks) {
  const bool fits = std::all_of(ranks.begin(), ranks.end(), [this](int r) { return r >= 0 && r < comm_.size(); });
  if (!fits) throw BugError("ShardedOptimizer: a rank to gather on is none of the ", comm_.size());
  gathered_on_ = std::move(ranks);
}

bool ShardedOptimizer::gathers() const {
  return std::find(gathered_on_.begin(), gathered_on_.end(), comm_.rank()) != gathered_on_.end();
}

optim::OptimizerState ShardedOptimizer::state_dict() const {
  const c10::AutoGradMode no_grad(false);
  optim::OptimizerState state = slices_->state_dict();
  for (optim::ParameterState& of : state.parameters) {
    const Shard& shard = shards_[static_cast<size_t>(of.index)];
    for (optim::NamedTensor& tensor : of.tensors) {
      // Every rank counts the steps of all parameters.
      if (!slices_->is_number(tensor.name)) tensor.value = gathered(shard, tensor.value);
    }
  }
  if (!gathers()) state.parameters.clear();
  return state;
}

ShardedOptimizer::OwnParts ShardedOptimizer::own_parts() const {
  OwnParts parts{.state = slices_->state_dict(), .masters = slices_->masters(), .averages = slices_->averages()};
  const auto stand_in = [&](size_t number, at::Tensor& tensor) {
    const Shard& shard = shards_[number];
    const at::Tensor whole =
        at::empty_strided(shard.parameter.sizes(), shard.parameter.strides(), tensor.options().device(at::kMeta));
    const int64_t first = shard.bounds[static_cast<size_t>(comm_.rank())];
    parts.slices.push_back({whole, std::exchange(tensor, whole), first});
  };
  for (optim::ParameterState& of : parts.state.parameters) {
    for (optim::NamedTensor& tensor : of.tensors) {
      if (!slices_->is_number(tensor.name)) stand_in(static_cast<size_t>(of.index), tensor.value);
    }
  }
  for (auto* tensors : {&parts.masters, &parts.averages}) {
    for (size_t i = 0; i < tensors->size(); ++i) {
      if ((*tensors)[i].defined()) stand_in(i, (*tensors)[i]);
    }
  }
  return parts;
}

void ShardedOptimizer::load_state_dict(const optim::OptimizerState& state, std::span<const std::string> names) {
  const c10::AutoGradMode no_grad(false);
  const auto positions = optim::match_groups(name(), state, slices_->param_groups());
  optim::OptimizerState own = state;
  for (optim::ParameterState& of : own.parameters) {
    const size_t number = optim::find_position(name(), positions, of.index).number;
    const Shard& shard = shards_[number];
    for (optim::NamedTensor& tensor : of.tensors) {
      if (!tensor.value.defined() || slices_->is_number(tensor.name)) continue;
      optim::check_like(cat(name(), ": state of ", optim::parameter_name(names, number)), shard.parameter, tensor);
      tensor.value = slice_of(shard, optim::ordered_as(shard.parameter, tensor.value, state.copy));
    }
  }
  slices_->load_state_dict(own, names);
}

std::vector<at::Tensor> ShardedOptimizer::gathered(std::vector<at::Tensor> slices) const {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].defined()) slices[i] = gathered(shards_[i], slices[i]);
  }
  return slices;
}

// Returns this rank's slices of tensors that are laid out as the parameters. `what` is their name in errors.
std::vector<at::Tensor> ShardedOptimizer::scattered(const char* what, std::vector<at::Tensor> whole) const {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < std::min(whole.size(), shards_.size()); ++i) {
    if (!whole[i].defined()) continue;
    const at::Tensor& parameter = shards_[i].parameter;
    optim::check_like(cat(name(), ": ", what, " of parameter ", i), parameter, {what, whole[i]});
    whole[i] = slice_of(shards_[i], optim::ordered_as(parameter, whole[i]));
  }
  return whole;
}

std::vector<at::Tensor> ShardedOptimizer::averages() const { return gathered(slices_->averages()); }

void ShardedOptimizer::load_averages(const std::vector<at::Tensor>& averages) {
  slices_->load_averages(scattered("average", averages));
}

std::vector<at::Tensor> ShardedOptimizer::masters() const { return gathered(slices_->masters()); }

void ShardedOptimizer::load_masters(const std::vector<at::Tensor>& masters) {
  const std::vector<at::Tensor> own = scattered("master", masters);
  const c10::AutoGradMode no_grad(false);
  begin_writing();
  slices_->load_masters(own);
  end_writing();
}

void ShardedOptimizer::exchange_averages() {
  if (!keeps_average()) return;
  const c10::AutoGradMode no_grad(false);
  begin_writing();
  slices_->exchange_averages();
  end_writing();
}

}  // namespace lockstep::parallel
