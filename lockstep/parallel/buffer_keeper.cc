#include "lockstep/parallel/buffer_keeper.h"

#include <c10/core/GradMode.h>

namespace lockstep::parallel {

BufferKeeper::BufferKeeper(const torch::nn::Module& module) : buffers_(module.buffers()) {
  for (const auto& buffer : buffers_) {
    start_.push_back(buffer.detach().clone());
    kept_.push_back(buffer.detach().clone());
  }
}

void BufferKeeper::copy(std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

void BufferKeeper::begin_step() {
  copy(start_, buffers_);
  copy(kept_, buffers_);
}

void BufferKeeper::begin_lane() { copy(buffers_, start_); }

void BufferKeeper::end_lane(int lane) {
  if (lane == 0) copy(kept_, buffers_);
}

void BufferKeeper::end_step() {
  copy(buffers_, kept_);
  changed_ = true;
}

void BufferKeeper::sync(comm::Communicator& comm) {
  if (!changed_) return;
  for (const auto& buffer : buffers_) comm.broadcast(buffer, 0);
  changed_ = false;
}

}  // namespace lockstep::parallel
