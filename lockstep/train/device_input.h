// Brings a loader's batches to the computing device. While a GPU computes one step, the next step's batch is copied to
// it from pinned memory on a stream of its own. On the CPU the loader's batches are passed on unchanged.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

#include "lockstep/data/loader.h"

namespace lockstep::train {

class DeviceInput {
 public:
  // Takes batches from `loader`, which outlives this. On a GPU it takes them one step ahead.
  DeviceInput(data::Loader& loader, c10::Device device);

  // Returns the next step's lanes, with all tensors on the device, ready for the current stream. `wait_ns` is the time
  // that this call waited for the loader, on a GPU for the batch that it takes ahead. Throws what Loader::next()
  // throws.
  data::StepBatch next();

 private:
  void upload();

  data::Loader& loader_;
  c10::Device device_;
  std::optional<c10::Stream> side_;
  std::optional<c10::Event> arrived_;
  std::optional<data::StepBatch> ahead_;
};

}  // namespace lockstep::train
