#include "lockstep/parallel/buffer_keeper.h"

#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/parallel/packed_memory.h"
#include "lockstep/parallel/state_broadcast.h"

namespace lockstep::parallel {
namespace {

int64_t version_of(const at::Tensor& buffer) { return buffer.is_inference() ? 0 : int64_t{buffer._version()}; }

}  // namespace

BufferKeeper::BufferKeeper(const torch::nn::Module& module, bool travel) : travel_(travel) {
  const c10::AutoGradMode no_grad(false);
  std::vector<std::pair<at::Device, std::vector<Packed>>> by_device;
  std::unordered_set<const c10::TensorImpl*> seen;
  const auto add_buffers = [&](const torch::nn::Module& layer, const std::string& prefix) {
    for (const auto& item : layer.named_buffers(/*recurse=*/false)) {
      const at::Tensor& buffer = item.value();
      if (buffer.layout() != at::kStrided) {
        throw ConfigError("DistributedDataParallel: the buffer ", prefix, item.key(), " is sparse; keep it dense");
      }
      if (buffer.numel() == 0 || !seen.insert(buffer.unsafeGetTensorImpl()).second) continue;
      const auto is_there = [&](const auto& group) { return group.first == buffer.device(); };
      auto found = std::find_if(by_device.begin(), by_device.end(), is_there);
      if (found == by_device.end()) found = by_device.insert(found, {buffer.device(), {}});
      const bool is_statistic = item.key() == "running_mean" || item.key() == "running_var";
      found->second.push_back({.name = prefix + item.key(),
                               .buffer = buffer,
                               .part = {},
                               .start = {},
                               .norm = is_statistic ? &layer : nullptr});
    }
  };
  add_buffers(module, "");
  for (const auto& part : module.named_modules("", /*include_self=*/false)) {
    add_buffers(*part.value(), part.key() + '.');
    layers_.push_back(part.value());
  }
  for (auto& [device, buffers] : by_device) keep(std::move(buffers));
}

// Moves the buffers of one device into one piece of memory.
void BufferKeeper::keep(std::vector<Packed> buffers) {
  std::vector<at::Tensor> tensors;
  for (const Packed& each : buffers) tensors.push_back(each.buffer);
  const PackedMemory now = pack(tensors), start = pack(tensors);
  for (size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].part = now.parts[i];
    buffers[i].start = start.parts[i];
    buffers[i].version = version_of(tensors[i]);
    buffers[i].buffer.set_data(now.parts[i]);
    buffers_.push_back(std::move(buffers[i]));
  }
  now_.push_back(now.all);
  start_.push_back(start.all);
  kept_.push_back(now.all.clone());
}

// A buffer may have got other memory since: torch::load gives it that of the file, and another keeper its own.
void BufferKeeper::take_back(Taken& taken) {
  const c10::AutoGradMode no_grad(false);
  for (const Packed& each : buffers_) {
    const auto& [name, buffer, part, start, norm, version] = each;
    if (!taken.insert(buffer.unsafeGetTensorImpl()).second || each.is_here()) continue;
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
void BufferKeeper::begin_step(comm::Communicator& comm, Taken& taken) {
  mark_changed();
  sync(comm, taken);
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

void BufferKeeper::sync(comm::Communicator& comm, Taken& taken) {
  take_back(taken);
  send(comm);
}

void BufferKeeper::send(comm::Communicator& comm) {
  if (!travel_ || !changed_) return;
  for (const auto& each : now_) broadcast_tensor(each, comm, 0);
  changed_ = false;
}

void BufferKeeper::sync_after_pass(comm::Communicator& comm, Taken& taken) {
  take_back(taken);
  std::vector<Packed*> changed;  // in place, since the pass before
  for (Packed& each : buffers_) {
    const int64_t version = version_of(each.buffer);
    const bool is_changed = std::exchange(each.version, version) != version,
               is_read = !each.norm || !each.norm->is_training();
    if (each.is_here() && is_changed && is_read) changed.push_back(&each);
  }
  if (!changed.empty()) copy(start_, now_);
  send(comm);
  for (Packed* each : changed) {
    if (at::equal(each->part, each->start)) continue;
    each->buffer.unsafeGetTensorImpl()->bump_version();
    ++each->version;
  }
}

}  // namespace lockstep::parallel
