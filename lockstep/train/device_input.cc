#include "lockstep/train/device_input.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace lockstep::train {

data::BatchMemory batch_memory(c10::Device device) {
  if (device.is_cpu()) return {};
  return [](at::IntArrayRef shape, at::ScalarType dtype, at::MemoryFormat format) {
    return at::empty(shape, at::TensorOptions(dtype).pinned_memory(true), format);
  };
}

DeviceInput::DeviceInput(data::Loader& loader, c10::Device device) : loader_(loader), device_(device) {
  if (!device_.is_cpu()) side_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_);
}

data::StepBatch DeviceInput::next() {
  if (device_.is_cpu()) return loader_.next();
  const bool is_first = !ahead_.has_taken();
  if (is_first) ahead_.take();
  if (present_) present_->arrived.synchronize();  // a step ago: it has arrived long since
  present_ = ahead_.next();
  data::StepBatch batch = loader_.settle(std::move(present_->read));
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  present_->arrived.block(stream);
  for (auto& lane : batch.lanes) {
    // Allocated on the side stream: not to be given out again before this one is done with them.
    lane.for_each_tensor([&](at::Tensor& tensor) { tensor.record_stream(stream); });
  }
  ahead_.take();
  if (!is_first) batch.wait_ns = 0;
  if (ahead_.ahead() != nullptr) batch.wait_ns += ahead_.ahead()->read.step.wait_ns;
  return batch;
}

DeviceInput::Arriving DeviceInput::upload() {
  Arriving next{loader_.read(), c10::Event(device_.type()), {}};
  const c10::StreamGuard on_side(*side_);
  for (auto& lane : next.read.step.lanes) {
    lane.for_each_tensor([&](at::Tensor& tensor) {
      next.on_host.push_back(tensor.pin_memory());  // a small tensor is a copy that is not pinned
      tensor = next.on_host.back().to(device_, /*non_blocking=*/true);
    });
  }
  next.arrived.record(*side_);
  return next;
}

}  // namespace lockstep::train
