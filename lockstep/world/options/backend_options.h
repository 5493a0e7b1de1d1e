// How the ranks of a world talk, as a user chooses it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/option_set.h"

namespace lockstep {

// The names of backends() (world/backends.h); a test compares the two.
constexpr auto kBackendNames =
    std::to_array<std::string_view>({"shm", "single", "gloo", "mpi", "hierarchical", "nccl"});

// fold: the same bits at any world size. ring: what others have.
constexpr auto kAlgorithmNames = std::to_array<std::string_view>({"fold", "ring"});

struct BackendOptions {
  std::string backend = "auto";
  std::string algorithm = "fold";
  std::string interfaces;  // network interfaces, "eth0,eth1"; empty: the one that reaches the rendezvous
  int timeout = 600;       // seconds that a rank waits for the others

  // `refused`: words of --backend that are answered.
  void declare(config::OptionSet& options, const std::vector<config::Refused>& refused = {});
};

}  // namespace lockstep
