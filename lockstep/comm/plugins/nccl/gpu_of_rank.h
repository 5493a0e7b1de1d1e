// Which GPU a rank computes on. NCCL takes one GPU a rank.
#pragma once

#include <string>
#include <vector>

namespace lockstep::comm {

// Returns the GPU of a rank, as this process numbers them: that of its local rank where the node's ranks see all GPUs,
// or the only one that it sees (Slurm's --gpus-per-task=1, CUDA_VISIBLE_DEVICES). Throws ConfigError if there are too
// few.
int gpu_of_rank(int rank, int local_rank, int local_size, int visible_gpus);

// `gpus` names each rank's GPU. Throws ConfigError if two ranks have the same.
void require_gpus_of_their_own(const std::vector<std::string>& gpus);

}  // namespace lockstep::comm
