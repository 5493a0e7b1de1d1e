// The calls by which batches reach a GPU beside its computing, and no others, so that a test can see their order.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace lockstep::train {

// An event on a copy stream.
class Arrival {
 public:
  virtual ~Arrival() = default;
  // Makes the calling thread's current stream wait for it; the host goes on.
  virtual void compute_waits() = 0;
  virtual void host_waits() = 0;
};

// A stream of a device beside the one that computes. One thread.
class CopyStream {
 public:
  virtual ~CopyStream() = default;
  // Calls `work`. What that queues on the device, and the memory that it allocates there, is this stream's.
  virtual void run(const std::function<void()>& work) = 0;
  // Returns the tensor where it lies in pinned memory, else a copy there.
  virtual at::Tensor pinned(const at::Tensor& host) = 0;
  // Within run(): queues a copy to the device and returns it. `pinned` must stay as it is until that has arrived.
  virtual at::Tensor copy(const at::Tensor& pinned) = 0;
  // Records an event behind all that was queued so far.
  virtual std::unique_ptr<Arrival> record() = 0;
  // Keeps the memory of a tensor of this stream until the calling thread's current stream is done with it, too.
  virtual void also_used_by_compute(const at::Tensor& on_device) = 0;
};

// A stream of libtorch's pool for the device, which is no CPU.
std::unique_ptr<CopyStream> copy_stream(c10::Device device);

}  // namespace lockstep::train
