// The GPUs that this process may use, as the CUDA driver counts them; without libtorch and without a CUDA context.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Returns the number of GPUs that the driver and CUDA_VISIBLE_DEVICES leave this process; 0 without a driver. It
// initialises the driver in this process (cuInit), which may take seconds; later calls are quick. The driver can't be
// used in a child that was forked afterwards: the launcher's children exec their program before they use anything, and
// its guard never uses the driver. Any thread.
int visible_gpus();

// The same of the driver in this library. It stays open for the rest of the process, for closing a driver that was
// initialised is not safe.
int gpus_of_driver(const char* library);

// Returns the NUMA node, by the system's number, that each of visible_gpus() is at; 0 where the system doesn't tell.
std::vector<int> numa_nodes_of_gpus();
// The same of the driver in this library, and of the devices in this folder.
std::vector<int> numa_nodes_of_driver(const char* library, const std::string& devices);

// A function that counts GPUs: visible_gpus(), or a test's.
using CountGpus = int (*)();

// Returns which of the `visible` GPUs is a rank's own: that of its local rank where the node's ranks see all GPUs, or
// the only one that it sees (Slurm's --gpus-per-task=1). Nothing if there are too few. Whether two ranks that see one
// GPU each see the same one, only the GPUs' ids tell.
std::optional<int> own_gpu(int local_rank, int local_size, int visible);

// The host that NCCL takes this process's for, NCCL_HOSTID of the environment; "" if it is not set. Ranks of several
// such hosts reach each other by sockets, and may share a GPU: so a machine with one GPU tests several ranks.
std::string nccl_host();

}  // namespace lockstep
