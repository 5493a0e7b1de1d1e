// What a rank's device is, for the run's header and the rank's log.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "lockstep/base/cpu_features.h"
#include "lockstep/comm/plugins/gpu_facts.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

struct DeviceFacts {
  std::string name;     // "CPU (AMX)", "NVIDIA H200 (cuda:0)"
  std::string details;  // "compute capability 9.0, 140 GiB; driver for CUDA 13.0, CUDA 13.0, cuDNN 9.10.2, NCCL 2.28.3"
  std::string id;       // of a GPU, among all machines'; empty for a CPU
};

// The facts of a device that is open (device.h).
DeviceFacts facts_of(c10::Device device);
// The same from what was found out. Pure functions.
DeviceFacts facts_of(const CpuFeatures& cpu);
DeviceFacts facts_of(c10::Device device, const comm::GpuFacts& gpu);

// The line that a rank's log opens with: "computes on NVIDIA H200 (cuda:0), compute capability 9.0, …".
std::string log_line(const DeviceFacts& facts);

// A rank's GPU.
struct RankGpu {
  std::string id;      // DeviceFacts::id
  std::string device;  // "cuda:0", on several nodes "cuda:0 of HOST"
};

// Returns "2 ranks share cuda:0, 3 share cuda:1", of the GPUs that several ranks have; "" if there is none. `gpus` is
// by rank. A pure function.
std::string shared_gpus(const std::vector<RankGpu>& gpus);

// Returns the same of the world's ranks; "" on CPUs. All ranks are on one kind of device. A collective on GPUs. Throws
// ConfigError if ranks share a GPU and may not.
std::string shared_gpus(World& world, c10::Device device, const DeviceFacts& own, bool may_share);

}  // namespace lockstep::train
