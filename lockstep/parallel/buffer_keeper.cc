#include "lockstep/parallel/buffer_keeper.h"

#include <c10/core/GradMode.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>

#include "lockstep/parallel/state_broadcast.h"

namespace lockstep::parallel {
namespace {

bool is_batch_norm(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1d>() != nullptr || module.as<torch::nn::BatchNorm2d>() != nullptr ||
         module.as<torch::nn::BatchNorm3d>() != nullptr;
}

}  // namespace

BufferKeeper::BufferKeeper(const torch::nn::Module& module, bool travel) : travel_(travel), buffers_(module.buffers()) {
  for (const auto& buffer : buffers_) {
    start_.push_back(buffer.detach().clone());
    kept_.push_back(buffer.detach().clone());
  }
  for (const auto& part : module.modules(/*include_self=*/false)) {
    if (is_batch_norm(*part)) norms_.push_back(part);
    others_ = others_ || (!is_batch_norm(*part) && !part->named_buffers(/*recurse=*/false).is_empty());
  }
  others_ = others_ || (!is_batch_norm(module) && !module.named_buffers(/*recurse=*/false).is_empty());
}

bool BufferKeeper::read_by_forward() const {
  const auto evaluates = [](const auto& norm) { return !norm->is_training(); };
  return others_ || std::any_of(norms_.begin(), norms_.end(), evaluates);
}

// A graph that is alive may have saved a buffer: as when a layer updates its statistics, it is not told.
void BufferKeeper::copy(std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < to.size(); ++i) to[i].variable_data().copy_(from[i]);
}

void BufferKeeper::begin_step(comm::Communicator& comm) {
  sync_if_read(comm);
  copy(start_, buffers_);
  copy(kept_, buffers_);
  in_step_ = true;
}

void BufferKeeper::begin_lane() { copy(buffers_, start_); }

void BufferKeeper::end_lane(int lane) {
  if (lane == 0) copy(kept_, buffers_);
}

void BufferKeeper::end_step() {
  copy(buffers_, kept_);
  changed_ = true;
  in_step_ = false;
}

void BufferKeeper::restore() noexcept {
  if (in_step_) copy(buffers_, start_);
  in_step_ = false;
}

void BufferKeeper::sync_if_read(comm::Communicator& comm) {
  if (changed_ && read_by_forward()) sync(comm);
}

void BufferKeeper::leave(size_t turn) {
  if (left_.size() <= turn) left_.resize(turn + 1);
  if (left_[turn].empty()) {
    for (const auto& buffer : buffers_) left_[turn].push_back(buffer.detach().clone());
  } else {
    copy(left_[turn], buffers_);
  }
}

void BufferKeeper::enter(size_t turn) { copy(buffers_, left_[turn]); }

void BufferKeeper::sync(comm::Communicator& comm) {
  if (!travel_ || !changed_) return;
  for (const auto& buffer : buffers_) broadcast_tensor(buffer, comm, 0);
  changed_ = false;
}

}  // namespace lockstep::parallel
