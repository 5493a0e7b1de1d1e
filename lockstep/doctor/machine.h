// What a machine has that runs depend on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/cpu_features.h"
#include "lockstep/base/env.h"

namespace lockstep::doctor {

struct Interface {
  std::string name;                    // "eth0"
  std::vector<std::string> addresses;  // of IPv4 and IPv6
};

struct Machine {
  CpuFeatures cpu;
  int cores = 1;           // that this process may use
  std::string topology;    // Topology::describe(), or why there is none
  uint64_t memory = 0;     // bytes: all of it
  uint64_t available = 0;  // bytes: what this process may still be given
  CgroupLimits limits = {};
  std::optional<uint64_t> dev_shm;    // bytes that /dev/shm has left; nothing: there is none
  std::string memfd;                  // "" if memory can be shared through one, else why not
  std::vector<Interface> interfaces;  // those that are up
};

// Of this machine, now. Never throws.
Machine look_at_machine();

// "AMX-BF16, AVX-512"; "none" for a CPU with none of those that decide how to compute.
std::string feature_names(const CpuFeatures& cpu);

}  // namespace lockstep::doctor
