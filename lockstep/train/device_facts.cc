#include "lockstep/train/device_facts.h"

#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/host_name.h"
#include "lockstep/comm/plugins/nccl_plugin.h"
#include "lockstep/comm/text_exchange.h"

namespace lockstep::train {
namespace {

// "CUDA 13.0" of 13000.
std::string cuda_version(const char* library, int number) {
  return number == 0 ? cat("no ", library) : cat(library, ' ', number / 1000, '.', number % 1000 / 10);
}
// "NCCL 2.28.3" of 22803.
std::string library_version(const char* library, int number) {
  if (number == 0) return cat("no ", library);
  return cat(library, ' ', number / 10000, '.', number % 10000 / 100, '.', number % 100);
}

}  // namespace

DeviceFacts facts_of(const CpuFeatures& cpu) {
  const char* widest = cpu.amx_bf16 ? " (AMX)" : cpu.avx512_bf16 ? " (AVX512-BF16)" : cpu.avx512 ? " (AVX-512)" : "";
  return {.name = cat("CPU", widest), .details = cpu.model, .id = ""};
}

DeviceFacts facts_of(c10::Device device, const comm::GpuFacts& gpu) {
  return {.name = cat(gpu.name, " (", device.str(), ')'),
          .details =
              cat("compute capability ", gpu.capability_major, '.', gpu.capability_minor, ", ", human_bytes(gpu.bytes),
                  "; driver for ", cuda_version("CUDA", gpu.driver), ", ", cuda_version("CUDA", gpu.runtime), ", ",
                  library_version("cuDNN", gpu.cudnn), ", ", library_version("NCCL", gpu.nccl)),
          .id = gpu.id};
}

DeviceFacts facts_of(c10::Device device) {
  if (device.is_cpu()) return facts_of(detect_cpu_features());
  const auto describe =
      comm::plugin_function<decltype(lockstep_describe_gpu)>(comm::kCudaPlugin, "lockstep_describe_gpu");
  comm::GpuFacts gpu;
  describe(device.index(), gpu);
  return facts_of(device, gpu);
}

std::string log_line(const DeviceFacts& facts) {
  return cat("computes on ", facts.name, facts.details.empty() ? "" : ", ", facts.details);
}

std::string shared_gpus(const std::vector<RankGpu>& gpus) {
  struct Sharers {
    std::string device;
    int ranks = 0;
  };
  std::map<std::string, Sharers> by_id;
  for (const RankGpu& gpu : gpus) {
    Sharers& sharers = by_id[gpu.id];
    if (sharers.ranks++ == 0) sharers.device = gpu.device;
  }
  std::map<std::string, int> shared;  // in the order of the devices' names
  for (const auto& [id, sharers] : by_id) {
    if (sharers.ranks > 1) shared.emplace(sharers.device, sharers.ranks);
  }
  std::string text;
  for (const auto& [device, ranks] : shared) {
    text += text.empty() ? cat(ranks, " ranks share ", device) : cat(", ", ranks, " share ", device);
  }
  return text;
}

std::string shared_gpus(World& world, c10::Device device, const DeviceFacts& own, bool may_share) {
  if (device.is_cpu() || world.size() == 1) return "";
  const bool one_node = world.place().local_size == world.size();
  const std::string named = one_node ? device.str() : cat(device.str(), " of ", host_name());
  const auto ids = comm::gather_texts(world.communicator(), own.id);
  const auto names = comm::gather_texts(world.communicator(), named);
  std::vector<RankGpu> gpus;
  for (size_t rank = 0; rank < ids.size(); ++rank) gpus.push_back({.id = ids[rank], .device = names[rank]});
  const std::string shared = shared_gpus(gpus);
  if (shared.empty() || may_share) return shared;
  throw ConfigError("--device cuda: ", shared,
                    "; start fewer ranks, give each a GPU of its own (CUDA_VISIBLE_DEVICES), or train with --backend "
                    "gloo, with which ranks may share one");
}

}  // namespace lockstep::train
