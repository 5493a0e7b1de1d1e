// The device that `bench step` measures on: when its work is done, and what of its memory that takes.
#pragma once

#include <c10/core/Device.h>

#include "lockstep/train/options/device_option.h"
#include "lockstep/world/world.h"

namespace lockstep::worker {

// One thread.
class BenchDevice {
 public:
  // Throws as train::open_device.
  BenchDevice(const train::DeviceChoice& device, const World& world);

  c10::Device device() const { return device_; }
  bool is_cpu() const { return device_.is_cpu(); }

  // Returns when the device has done all that was queued on it. A CPU queues nothing.
  void wait() const;

  // Begins peak_mb() anew, with what tensors take now.
  void forget_peak() const;
  // The most of the device's memory that tensors have taken, in MB, as libtorch's allocator counts it (PyTorch's
  // torch.cuda.max_memory_allocated). 0 on a CPU.
  double peak_mb() const;

 private:
  c10::Device device_;
};

}  // namespace lockstep::worker
