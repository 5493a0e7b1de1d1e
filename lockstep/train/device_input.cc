#include "lockstep/train/device_input.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace lockstep::train {

DeviceInput::DeviceInput(data::Loader& loader, c10::Device device) : loader_(loader), device_(device) {
  if (!device_.is_cpu()) side_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_);
}

data::StepBatch DeviceInput::next() {
  if (device_.is_cpu()) return loader_.next();
  const bool is_first = !ahead_;
  if (is_first) upload();
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  arrived_->block(stream);
  data::StepBatch batch = std::move(*ahead_);
  for (auto& lane : batch.lanes) {
    // Allocated on the side stream: not to be given out again before this one is done with them.
    lane.for_each_tensor([&](at::Tensor& tensor) { tensor.record_stream(stream); });
  }
  upload();
  batch.wait_ns = ahead_->wait_ns + (is_first ? batch.wait_ns : 0);
  return batch;
}

void DeviceInput::upload() {
  ahead_ = loader_.next();
  const c10::StreamGuard on_side(*side_);
  for (auto& lane : ahead_->lanes) {
    lane.for_each_tensor([&](at::Tensor& tensor) { tensor = tensor.pin_memory().to(device_, /*non_blocking=*/true); });
  }
  arrived_.emplace(device_.type());
  arrived_->record(*side_);
}

}  // namespace lockstep::train
