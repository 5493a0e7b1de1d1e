#include "bench_device.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "lockstep/train/device.h"

namespace lockstep::worker {

BenchDevice::BenchDevice(const train::DeviceChoice& device, const World& world)
    : device_(train::open_device(device, train::node_ranks(world, /*may_share=*/false))) {}

void BenchDevice::wait() const {
  if (!is_cpu()) c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
}

void BenchDevice::forget_peak() const {
  if (!is_cpu()) c10::getDeviceAllocator(device_.type())->resetPeakStats(device_.index());
}

double BenchDevice::peak_mb() const {
  if (is_cpu()) return 0;
  const auto stats = c10::getDeviceAllocator(device_.type())->getDeviceStats(device_.index());
  const auto aggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return static_cast<double>(stats.allocated_bytes[aggregate].peak) / 1e6;
}

}  // namespace lockstep::worker
