#include "lockstep/parallel/numbers_on_their_way.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>

namespace lockstep::parallel {

struct NumbersOnTheirWay::Copy {
  at::Tensor host;
  std::optional<c10::Event> behind;  // the copy; nothing once it is there
};

NumbersOnTheirWay::NumbersOnTheirWay(const at::Tensor& numbers) : copy_(std::make_shared<Copy>()) {
  const at::Device device = numbers.device();
  copy_->host = at::empty(numbers.sizes(), numbers.options().device(at::kCPU).pinned_memory(!device.is_cpu()));
  copy_->host.copy_(numbers, /*non_blocking=*/true);
  if (device.is_cpu()) return;
  copy_->behind.emplace(device.type());
  copy_->behind->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

const at::Tensor& NumbersOnTheirWay::read() const {
  if (copy_->behind) copy_->behind->synchronize();
  copy_->behind.reset();
  return copy_->host;
}

}  // namespace lockstep::parallel
