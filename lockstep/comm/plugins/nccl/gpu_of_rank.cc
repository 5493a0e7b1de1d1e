#include "lockstep/comm/plugins/nccl/gpu_of_rank.h"

#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/gpus.h"

namespace lockstep::comm {

int gpu_of_rank(int rank, int local_rank, int local_size, int visible_gpus) {
  if (const auto own = own_gpu(local_rank, local_size, visible_gpus)) return *own;
  throw ConfigError("backend nccl: rank ", rank, ": this node has ", local_size, local_size == 1 ? " rank" : " ranks",
                    " and ", visible_gpus, visible_gpus == 1 ? " GPU" : " GPUs",
                    "; start fewer ranks, see nvidia-smi and CUDA_VISIBLE_DEVICES, or share them with --backend gloo");
}

void require_gpus_of_their_own(const std::vector<UsedGpu>& gpus) {
  std::map<std::string, size_t> owners;
  for (size_t rank = 0; rank < gpus.size(); ++rank) {
    const auto [owner, is_new] = owners.emplace(gpus[rank].id, rank);
    if (is_new) continue;
    throw ConfigError("backend nccl: ranks ", owner->second, " and ", rank, " have the same GPU (", gpus[rank].id,
                      " of ", gpus[rank].host,
                      "), and NCCL takes one a rank; start fewer ranks, give each its own (CUDA_VISIBLE_DEVICES), or "
                      "share it with --backend gloo");
  }
}

}  // namespace lockstep::comm
