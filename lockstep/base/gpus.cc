#include "lockstep/base/gpus.h"

#include <dlfcn.h>

#include "lockstep/base/env.h"
#include "lockstep/base/signals_blocked.h"

namespace lockstep {
int gpus_of_driver(const char* library) {
  const SignalsBlocked meanwhile;  // for the driver's threads
  void* const driver = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (driver == nullptr) return 0;
  auto* const init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  auto* const count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int gpus = 0;
  return init != nullptr && count != nullptr && init(0) == 0 && count(&gpus) == 0 ? gpus : 0;
}

int visible_gpus() { return gpus_of_driver("libcuda.so.1"); }

std::string nccl_host() { return env("NCCL_HOSTID").value_or(""); }

std::optional<int> own_gpu(int local_rank, int local_size, int visible) {
  if (visible >= local_size) return local_rank;
  if (visible == 1) return 0;
  return std::nullopt;
}

}  // namespace lockstep
