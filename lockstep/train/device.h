// The device that a rank computes on.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "lockstep/comm/plugins/device_graph.h"
#include "lockstep/train/options/train_options.h"
#include "lockstep/world/world.h"

namespace lockstep::train {

// Opens the CUDA plug-in. It comes before anything that may ask libtorch for a GPU, such as init(): libtorch keeps its
// first answer for the process. `asked` is the option that asks for a GPU, for messages: "--backend nccl". Throws
// ConfigError if there is no GPU, whatever libraries this build has or lacks, or if it has no plug-in.
void open_cuda(const std::string& asked);
// Opens it where a GPU is asked for.
void require_gpu(const DeviceChoice& device);

// Prepares the environment of a deterministic run on GPUs, where the user has not said otherwise. Comes before init(),
// for no other thread may read the environment meanwhile, and before the first product on a GPU.
//   CUBLAS_WORKSPACE_CONFIG=:4096:8  cuBLAS repeats its bits (cuBLAS's documentation, "Results reproducibility").
//   NCCL_ALGO=^NVLS  NCCL leaves out sums inside of the NVLink switch, whose order may change.
// libtorch's ProcessGroupNCCL sets NCCL_ALGO in its constructor, too, but only if deterministic algorithms were asked
// for before, and init_seeds() comes after init().
void let_gpus_repeat(const DeviceChoice& device, bool deterministic);

// The ranks of this rank's node.
NodeRanks node_ranks(const World& world, bool may_share);

// Returns the rank's device, on which libtorch then makes what names no other one. Throws as require_gpu() and
// choose_gpu().
c10::Device open_device(const DeviceChoice& device, const NodeRanks& ranks);

// The devices for one process that uses all of its GPUs, its own one first; that one alone where `choice` names it, and
// the CPU where it is that.
std::vector<c10::Device> devices_of_process(const DeviceChoice& choice, c10::Device own);

// Returns the backend for ranks on such a device: "nccl" for GPUs if `backend` is "auto", else `backend`.
std::string backend_for(const DeviceChoice& device, const std::string& backend);

// Makes what records a step on this GPU (parallel/lane_graph.h); nothing for a CPU.
comm::MakeDeviceGraph device_graphs(c10::Device device);

}  // namespace lockstep::train
