#include "lockstep/parallel/buffer_keeper.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <unordered_set>

#include "lockstep/base/error.h"
#include "lockstep/parallel/state_broadcast.h"

namespace lockstep::parallel {
namespace {

constexpr int64_t kAlignment = 64;  // of each buffer, in bytes

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

BufferKeeper::BufferKeeper(const torch::nn::Module& module, bool travel) : travel_(travel) {
  const c10::AutoGradMode no_grad(false);
  std::vector<std::pair<at::Device, std::vector<Packed>>> by_device;
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_buffers()) {
    const at::Tensor& buffer = item.value();
    if (buffer.layout() != at::kStrided) {
      throw ConfigError("DistributedDataParallel: the buffer ", item.key(), " is sparse; keep it dense");
    }
    if (buffer.numel() == 0 || !seen.insert(buffer.unsafeGetTensorImpl()).second) continue;
    const auto is_there = [&](const auto& group) { return group.first == buffer.device(); };
    auto found = std::find_if(by_device.begin(), by_device.end(), is_there);
    if (found == by_device.end()) found = by_device.insert(found, {buffer.device(), {}});
    found->second.push_back({.name = item.key(), .buffer = buffer, .part = {}});
  }
  for (auto& [device, buffers] : by_device) {
    now_.push_back(pack(std::move(buffers)));
    start_.push_back(now_.back().clone());
    kept_.push_back(now_.back().clone());
  }
}

// Moves the buffers of one device into one piece of memory, which it returns.
at::Tensor BufferKeeper::pack(std::vector<Packed> buffers) {
  int64_t bytes = 0;
  for (const Packed& each : buffers) bytes += aligned(static_cast<int64_t>(each.buffer.nbytes()));
  const at::Tensor all = at::zeros({bytes}, at::TensorOptions(at::kByte).device(buffers[0].buffer.device()));
  int64_t first = 0;
  for (Packed& each : buffers) {
    const auto size = static_cast<int64_t>(each.buffer.nbytes());
    each.part = all.narrow(0, first, size).view(each.buffer.scalar_type()).view(each.buffer.sizes());
    each.part.copy_(each.buffer);
    each.buffer.set_data(each.part);
    first += aligned(size);
    buffers_.push_back(std::move(each));
  }
  return all;
}

// A buffer may have got other memory since: torch::load gives it that of the file.
void BufferKeeper::take_back() {
  const c10::AutoGradMode no_grad(false);
  for (const auto& [name, buffer, part] : buffers_) {
    if (buffer.const_data_ptr() == part.const_data_ptr()) continue;
    if (buffer.sizes() != part.sizes() || buffer.scalar_type() != part.scalar_type() ||
        buffer.device() != part.device()) {
      throw ConfigError("DistributedDataParallel: the buffer ", name, " is ", buffer.toString(), ' ', buffer.sizes(),
                        " now, and was ", part.toString(), ' ', part.sizes(),
                        " when the module was wrapped; wrap it anew");
    }
    part.copy_(buffer);
    buffer.set_data(part);
    changed_ = true;
  }
}

// A graph that is alive may have saved a buffer. Autograd then finds it unchanged, as when a layer updates its
// statistics: writing to this memory leaves the buffers' own versions as they are.
void BufferKeeper::copy(std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
}

// A forward outside of steps may have changed them on this rank alone, and nothing tells of it.
void BufferKeeper::begin_step(comm::Communicator& comm) {
  mark_changed();
  sync(comm);
  copy(start_, now_);
  copy(kept_, now_);
  in_step_ = true;
}

void BufferKeeper::begin_lane() { copy(now_, start_); }

void BufferKeeper::end_lane(int lane, size_t own) {
  if (travel_ ? lane == 0 : own == 0) copy(kept_, now_);
}

void BufferKeeper::end_step() {
  copy(now_, kept_);
  changed_ = true;
  in_step_ = false;
}

void BufferKeeper::restore() noexcept {
  if (in_step_) copy(now_, start_);
  in_step_ = false;
}

void BufferKeeper::leave(size_t turn) {
  if (left_.size() <= turn) left_.resize(turn + 1);
  if (left_[turn].empty()) {
    for (const auto& each : now_) left_[turn].push_back(each.clone());
  } else {
    copy(left_[turn], now_);
  }
}

void BufferKeeper::enter(size_t turn) { copy(now_, left_[turn]); }

void BufferKeeper::sync(comm::Communicator& comm) {
  take_back();
  if (!travel_ || !changed_) return;
  for (const auto& each : now_) broadcast_tensor(each, comm, 0);
  changed_ = false;
}

}  // namespace lockstep::parallel
