// The option --device: where ranks compute.
#pragma once

#include <array>
#include <string>

#include "lockstep/base/gpus.h"
#include "lockstep/config/option_set.h"

namespace lockstep::train {

enum class DeviceKind { kCpu, kCuda };
constexpr auto words(DeviceKind) {
  return std::to_array<config::Word<DeviceKind>>({{DeviceKind::kCpu, "cpu"}, {DeviceKind::kCuda, "cuda"}});
}

// "cpu"; "cuda", where each rank of a node has a GPU of its own; or "cuda:N", where all have the same one, for one rank
// a node.
struct DeviceChoice {
  static constexpr int kOwn = -1;
  DeviceKind kind = DeviceKind::kCpu;
  int gpu = kOwn;  // N: the GPU's number among those that the rank sees

  DeviceChoice() = default;
  DeviceChoice(DeviceKind wanted, int number = kOwn) : kind(wanted), gpu(number) {}
  bool on_gpu() const { return kind == DeviceKind::kCuda; }
  bool operator==(const DeviceChoice&) const = default;

  void declare(config::OptionSet& options, config::Effect effect);
};

// "cuda:1" and back. Throws ConfigError for anything else.
DeviceChoice read_device(const std::string& name, const std::string& text);
std::string write_device(const DeviceChoice& device);

[[noreturn]] void throw_no_gpu(const std::string& asked);  // by which option: "--device cuda"

// The ranks of one node, of which a rank is one.
struct NodeRanks {
  int local_rank = 0, size = 1;
  bool may_share = false;  // several may compute on one GPU: TrainOptions::may_share_gpus()
  int given = -1;          // the GPU that a launcher has given this rank (Paddle's does); -1: it leaves that open
};

// Returns the number of the GPU that a rank computes on, among the `visible` ones. Throws ConfigError if there is none,
// or if it is another rank's, too, and they may not share.
int choose_gpu(const DeviceChoice& device, const NodeRanks& ranks, int visible);

// Throws ConfigError unless all ranks that this process is about to start find their GPU. A single rank is left to look
// for itself.
void check_gpus(const DeviceChoice& device, int ranks, bool may_share, CountGpus count = visible_gpus);

}  // namespace lockstep::train
