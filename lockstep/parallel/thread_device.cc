#include "lockstep/parallel/thread_device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace lockstep::parallel {

std::optional<c10::DeviceType> gpu_type() {
  return at::globalContext().hasCUDA() ? std::optional(c10::kCUDA) : std::nullopt;
}

ThreadDevice::ThreadDevice(std::optional<c10::DeviceType> type) {
  if (!type) return;
  const c10::impl::VirtualGuardImpl guard(*type);
  stream_ = guard.getStream(guard.getDevice());
}

void ThreadDevice::set() const {
  if (!stream_) return;
  const c10::impl::VirtualGuardImpl guard(stream_->device_type());
  guard.setDevice(stream_->device());
  guard.exchangeStream(*stream_);
}

}  // namespace lockstep::parallel
