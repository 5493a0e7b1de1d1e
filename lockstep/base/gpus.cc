#include "lockstep/base/gpus.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/signals_blocked.h"

namespace lockstep {
namespace {

constexpr const char* kDriver = "libcuda.so.1";

}  // namespace

int gpus_of_driver(const char* library) {
  const SignalsBlocked meanwhile;  // for the driver's threads
  void* const driver = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (driver == nullptr) return 0;
  auto* const init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  auto* const count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int gpus = 0;
  return init != nullptr && count != nullptr && init(0) == 0 && count(&gpus) == 0 ? gpus : 0;
}

int visible_gpus() { return gpus_of_driver(kDriver); }

std::vector<int> numa_nodes_of_driver(const char* library, const std::string& devices) {
  std::vector<int> nodes(static_cast<size_t>(gpus_of_driver(library)), 0);
  if (nodes.empty()) return nodes;
  void* const driver = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  auto* const bus_of = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetPCIBusId"));
  for (size_t gpu = 0; bus_of != nullptr && gpu < nodes.size(); ++gpu) {
    char bus[32] = {};  // "0000:3B:00.0"
    if (bus_of(bus, sizeof bus, static_cast<int>(gpu)) != 0) continue;
    std::transform(std::begin(bus), std::end(bus), std::begin(bus), [](unsigned char c) { return std::tolower(c); });
    int node = -1;
    if (std::ifstream(cat(devices, '/', bus, "/numa_node")) >> node) nodes[gpu] = std::max(node, 0);
  }
  return nodes;
}

std::vector<int> numa_nodes_of_gpus() { return numa_nodes_of_driver(kDriver, "/sys/bus/pci/devices"); }

std::string nccl_host() { return env("NCCL_HOSTID").value_or(""); }

std::optional<int> own_gpu(int local_rank, int local_size, int visible) {
  if (visible >= local_size) return local_rank;
  if (visible == 1) return 0;
  return std::nullopt;
}

}  // namespace lockstep
