// The device that a rank computes on.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "lockstep/train/options/train_options.h"

namespace lockstep::train {

// Of the rank with this local number; ranks share GPUs where there are fewer of them. For a GPU it opens the CUDA
// plug-in, which must come before anything else asks libtorch for one. Throws ConfigError where this build or this
// machine has none.
c10::Device open_device(DeviceKind kind, int local_rank);

// The backend for ranks on such a device: NCCL for GPUs where none is asked for.
std::string backend_for(DeviceKind kind, const std::string& backend);

}  // namespace lockstep::train
