// The parts of a machine that a run depends on.
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
  std::vector<std::string> addresses;  // IPv4 and IPv6
};

struct Machine {
  CpuFeatures cpu;
  int cores = 1;           // CPU cores that this process may use
  std::string topology;    // Topology::describe(), or why there is none
  uint64_t memory = 0;     // bytes in all
  uint64_t available = 0;  // bytes that this process can still get
  CgroupLimits limits = {};
  std::optional<uint64_t> dev_shm;    // bytes free in /dev/shm; nothing: there is no /dev/shm
  std::string memfd;                  // "" if memory can be shared through a memfd, else why not
  std::vector<Interface> interfaces;  // the interfaces that are up
};

// Inspects this machine. Never throws.
Machine look_at_machine();

// Names the features that decide how to compute: "AMX-BF16, AVX-512"; "none" for a CPU without any.
std::string feature_names(const CpuFeatures& cpu);

}  // namespace lockstep::doctor
