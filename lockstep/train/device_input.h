// Brings a loader's batches to the computing device. While a GPU computes one step, the next step's batch is copied to
// it from pinned memory on a stream of its own. On the CPU the loader's batches are passed on unchanged.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>
#include <vector>

#include "lockstep/data/loader.h"
#include "lockstep/train/one_ahead.h"

namespace lockstep::train {

// The memory of a loader's batches for this device: pinned for a GPU, which copies from it while it computes.
data::BatchMemory batch_memory(c10::Device device);

class DeviceInput {
 public:
  // Takes batches from `loader`, which outlives this. On a GPU it takes them one step ahead.
  DeviceInput(data::Loader& loader, c10::Device device);
  DeviceInput(const DeviceInput&) = delete;
  DeviceInput& operator=(const DeviceInput&) = delete;

  // Returns the next step's lanes, with all tensors on the device, ready for the current stream. `wait_ns` is the time
  // that this call waited for the loader, on a GPU for the batch that it takes ahead. Throws what Loader::next() throws
  // for that step: a batch that can't be had ahead fails the step that needs it, and no earlier one. Bad samples, too,
  // are listed when their batch is used. A collective as Loader::next().
  data::StepBatch next();

 private:
  struct Arriving {
    data::ReadStep read;
    c10::Event arrived;
    std::vector<at::Tensor> on_host;  // what the copy reads: the loader uses their memory again once they are let go of
  };
  Arriving upload();

  data::Loader& loader_;
  c10::Device device_;
  std::optional<c10::Stream> side_;
  std::optional<Arriving> present_;  // that next() has returned, without its step
  OneAhead<Arriving> ahead_{[this] { return upload(); }};
};

}  // namespace lockstep::train
