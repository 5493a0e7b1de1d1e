// The two passes of resize_task.h on a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "lockstep/image/device/resize_task.h"

namespace lockstep::image {

// The most pixels that one of the tasks has in a pass.
struct MostPixels {
  int64_t between = 0, result = 0;
};

// Queues both passes of `count` tasks, at most 65,535. The tasks and all that they point to are the device's, and stay
// until the stream has passed. Returns the launch's error.
cudaError_t queue_resizes(const ResizeTask* tasks, int count, const MostPixels& most, cudaStream_t stream);

}  // namespace lockstep::image
