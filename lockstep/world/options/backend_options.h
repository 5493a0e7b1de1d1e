// The options of communication between ranks.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "lockstep/config/option_set.h"

namespace lockstep {

// The names of backends() (world/backends.h); a test compares the two.
constexpr auto kBackendNames =
    std::to_array<std::string_view>({"shm", "single", "gloo", "mpi", "hierarchical", "nccl"});

struct BackendOptions {
  std::string backend = "auto";
  std::string interfaces;  // network interfaces, "eth0,eth1"; empty: the one that reaches the rendezvous
  int timeout = 600;       // seconds that a rank waits for the others

  void declare(config::OptionSet& options);
};

}  // namespace lockstep
