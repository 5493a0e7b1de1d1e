// How a run is divided among processes.
#pragma once

#include <array>
#include <string>

#include "lockstep/config/option_set.h"

namespace lockstep::parallel {

// What gradients are rounded to, at every node of the fold's tree and on the wire; each addition is fp32's.
enum class CommType { kFp32, kBf16 };
constexpr auto words(CommType) {
  return std::to_array<config::Word<CommType>>({{CommType::kFp32, "fp32"}, {CommType::kBf16, "bf16"}});
}

// Whether each rank keeps the optimizer's state of its slice alone; auto: where ranks share memory.
enum class ShardOptimizer { kAuto, kOn, kOff };
constexpr auto words(ShardOptimizer) {
  return std::to_array<config::Word<ShardOptimizer>>(
      {{ShardOptimizer::kAuto, "auto"}, {ShardOptimizer::kOn, "on"}, {ShardOptimizer::kOff, "off"}});
}

struct ParallelOptions {
  int nproc = 1;    // 0 stands for "auto" until resolve()
  int lanes = 0;    // 0: the world size
  int threads = 0;  // intra-op threads a rank; 0: default_threads() (lanes.h)
  bool pin = false;
  bool sync_bn = false;  // BatchNorm over all lanes
  ShardOptimizer shard_optimizer = ShardOptimizer::kAuto;
  CommType comm_dtype = CommType::kFp32;

  void declare(config::OptionSet& options);
  // Replaces nproc "auto" by a number, for a machine of `cores`. Throws ConfigError for lanes that the processes can't
  // share.
  void resolve(int cores);
  // The lanes of a world of `world_size` ranks.
  int lanes_of(int world_size) const { return lanes == 0 ? world_size : lanes; }
};

// --nproc N and --threads N, or one of them, of commands that have no lanes.
struct ProcessOptions {
  int nproc = 1;
  int threads = 0;  // 0: default_threads()

  void declare(config::OptionSet& options);
  void declare_nproc(config::OptionSet& options);
  void declare_threads(config::OptionSet& options);
};

}  // namespace lockstep::parallel
