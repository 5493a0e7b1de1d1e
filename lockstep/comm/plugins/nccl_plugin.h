// Ranks with a GPU each, joined by NCCL through c10d: liblockstep_cuda.so, a plug-in.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "lockstep/base/board.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/plugins/plugin.h"
#include "lockstep/comm/rank_table.h"

namespace c10d {
class Store;
}

namespace lockstep::comm {

inline constexpr PluginName kCudaPlugin{"nccl", "liblockstep_cuda.so",
                                        "build it where a CUDA toolkit is (cmake -DLOCKSTEP_CUDA=ON), or use auto"};

struct NcclOptions {
  // The same ranks over their CPUs: it carries barriers, messages (which NCCL has no tags for) and CPU tensors.
  std::unique_ptr<Communicator> host = {};
  c10::intrusive_ptr<c10d::Store> store = {};  // of this backend's own keys
  int rank = 0;
  RankTable ranks = {};
  std::string interfaces = {};  // NCCL_SOCKET_IFNAME, where it is unset; all NCCL_* variables are NCCL's
  std::chrono::milliseconds timeout{600'000};
  Board* board = nullptr;
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

}  // namespace lockstep::comm

// The plug-in's entry; the caller owns what it returns. Local rank r has GPU r. NCCL connects at the first call. CUDA
// tensors' collectives run on a stream of their own behind what the current stream has, and wait() makes the current
// stream wait for them, not the host; why a call failed is thrown by a later one. Throws ConfigError if this node has
// fewer GPUs than ranks.
extern "C" lockstep::comm::Communicator* lockstep_make_nccl_communicator(lockstep::comm::NcclOptions& options);
