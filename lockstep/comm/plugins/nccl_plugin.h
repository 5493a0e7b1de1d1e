// The backend for ranks with a GPU each: NCCL through c10d, in the plug-in liblockstep_cuda.so.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/base/board.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/plugins/plugin.h"
#include "lockstep/comm/rank_table.h"

namespace lockstep::comm {

inline constexpr PluginName kCudaPlugin{"nccl", "liblockstep_cuda.so",
                                        "build it where a CUDA toolkit is (cmake -DLOCKSTEP_CUDA=ON), or use auto"};

struct NcclOptions {
  // A communicator of the same ranks over their CPUs. It carries barriers, messages (NCCL has no tags) and CPU tensors.
  std::unique_ptr<Communicator> host = {};
  c10::intrusive_ptr<c10d::Store> store = {};  // with a key prefix of this backend's own
  int rank = 0;
  RankTable ranks = {};
  int gpu = -1;                 // this rank's, among those that it sees; -1: that of its local rank
  std::string interfaces = {};  // the value for NCCL_SOCKET_IFNAME if that is unset; NCCL reads all NCCL_* variables
  std::chrono::milliseconds timeout{600'000};
  bool same_bits =
      true;  // of sums at any number of ranks; else NCCL adds floating-point numbers, which takes less time
  std::string timeout_name = "the timeout";  // what the user sets it by, for messages
  Board* board = nullptr;
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  // Ends the process with this error: NCCL waits for a peer and can't be stopped. On a thread of the backend's.
  std::function<void(const std::exception_ptr&)> end_process = [](const std::exception_ptr&) { std::abort(); };
};

}  // namespace lockstep::comm

// The plug-in's entry point; the caller owns the communicator. Local rank r uses GPU r, or the only one that it sees,
// unless NcclOptions::gpu names another. NCCL connects at the first call. Collectives on CUDA tensors run on a stream
// of their own, behind the work queued on the current stream. wait() makes the current stream wait for them, not the
// host, and so a call's error is thrown by a later call. Throws ConfigError if this node has fewer GPUs than ranks, or
// two ranks have the same.
extern "C" lockstep::comm::Communicator* lockstep_make_nccl_communicator(lockstep::comm::NcclOptions& options);
