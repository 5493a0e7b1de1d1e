// The device and the stream on which a thread's operations run where they do not say otherwise.
#pragma once

#include <c10/core/Stream.h>

#include <optional>

namespace lockstep::parallel {

// The kind of this process's GPUs; nothing where it can use none.
std::optional<c10::DeviceType> gpu_type();

// The current device and stream of one thread, for others that go on with its work: libtorch gives each new thread
// device 0 and its default stream.
class ThreadDevice {
 public:
  // Takes those of the calling thread.
  explicit ThreadDevice(std::optional<c10::DeviceType> type = gpu_type());
  // Makes them the calling thread's.
  void set() const;

 private:
  std::optional<c10::Stream> stream_;  // which names its device
};

}  // namespace lockstep::parallel
