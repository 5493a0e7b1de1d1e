// A bundle brings no libtorch: it takes the user's.
#pragma once

#include <string>

namespace lockstep::bundle {

struct FoundLibtorch {
  std::string folder;  // that holds lib/libtorch_cpu.so
  std::string by;      // what named it: "LOCKSTEP_TORCH_DIR", "/usr/bin/python3", "beside the bundle"
};

// Looks for libtorch in three places: the folder that LOCKSTEP_TORCH_DIR names; the torch package of the first python3
// of PATH that has one; libtorch/ in the bundle's folder `root` or beside it. The first place that has one counts.
// Throws ConfigError if none has, if what is named there is no libtorch, or if it is of another version (the minor
// number counts) than Lockstep was compiled with.
FoundLibtorch find_libtorch(const std::string& root);

}  // namespace lockstep::bundle
