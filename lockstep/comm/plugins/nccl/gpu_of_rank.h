// Which GPU a rank computes on. NCCL takes one GPU a rank.
#pragma once

#include <string>
#include <vector>

namespace lockstep::comm {

// Returns own_gpu() (base/gpus.h), as this process numbers GPUs. Throws ConfigError if there are too few.
int gpu_of_rank(int rank, int local_rank, int local_size, int visible_gpus);

// The GPU that a rank uses.
struct UsedGpu {
  std::string id;    // of this GPU among all machines': "GPU-5f0c…"
  std::string host;  // for errors: containers of one machine may have names of their own
};

// Each rank's GPU, by rank. Throws ConfigError if two ranks have the same.
void require_gpus_of_their_own(const std::vector<UsedGpu>& gpus);

}  // namespace lockstep::comm
