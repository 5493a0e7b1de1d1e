// Which GPUs the processes of `lockstep launch` see, by Paddle's flags. Pure but for the count of GPUs.
#pragma once

#include <string>
#include <vector>

#include "lockstep/apps/commands/launch_plan.h"

namespace lockstep::apps {

struct Devices {
  int count = 0;                     // of those asked for; 0: none was
  bool on_cpu = false;               // whether it is known that there is no GPU
  std::vector<std::string> visible;  // for CUDA_VISIBLE_DEVICES; empty: it stays as it is
  std::string flag;                  // "--gpus 0,1"
};

// Throws ConfigError for a GPU that is not visible to this process.
Devices choose_devices(const LaunchOptions& options, const LaunchMachine& machine);

// Throws ConfigError if there are more processes than the devices that were asked for; one process may have several.
void check_devices(const Devices& devices, int nproc);

}  // namespace lockstep::apps
