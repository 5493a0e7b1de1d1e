// The device that a rank computes on.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "lockstep/train/options/train_options.h"

namespace lockstep::train {

// Returns the number of GPUs that the CUDA driver has; 0 without a driver. `library` is the driver's name.
int gpus_of_driver(const char* library = "libcuda.so.1");

// Opens the CUDA plug-in where GPUs are asked for. It comes before anything that may ask libtorch for a GPU, such as
// init(): libtorch keeps its first answer for the process. Throws ConfigError if there is no GPU, whatever libraries
// this build has or lacks, or if it has no plug-in.
void require_gpu(DeviceKind kind);

// Lets cuBLAS repeat its bits, which a deterministic run on GPUs needs: sets CUBLAS_WORKSPACE_CONFIG where it is unset.
// Comes before init(), for no other thread may read the environment meanwhile, and before the first product on a GPU.
void let_cublas_repeat(DeviceKind kind, bool deterministic);

// Returns the device of the rank with this local rank. Ranks share GPUs if there are fewer GPUs than ranks. Throws
// as require_gpu.
c10::Device open_device(DeviceKind kind, int local_rank);

// Returns the backend for ranks on such a device: "nccl" for GPUs if `backend` is "auto", else `backend`.
std::string backend_for(DeviceKind kind, const std::string& backend);

}  // namespace lockstep::train
