// A loader's batches on the device that computes: while one step computes, the next one's batch goes from pinned memory
// to the GPU on a stream of its own. On the CPU they are the loader's as they are.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <optional>

#include "lockstep/data/loader.h"

namespace lockstep::train {

class DeviceInput {
 public:
  // Takes batches from `loader`, which outlives this; on a GPU one step ahead.
  DeviceInput(data::Loader& loader, c10::Device device);

  // The next step's lanes, data and targets on the device, for the current stream. Throws what Loader::next() does.
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
