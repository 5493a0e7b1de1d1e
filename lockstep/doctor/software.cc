#include "lockstep/doctor/software.h"

#include <array>
#include <cstdio>
#include <filesystem>

#include "lockstep/base/gpus.h"
#include "lockstep/base/text.h"
#include "lockstep/doctor/libtorch.h"
#include "lockstep/doctor/shared_library.h"

namespace lockstep::doctor {
namespace {

// Calls a function that writes one number and returns 0; nothing if there is none or it fails.
std::optional<int> ask(const SharedLibrary& library, const char* name) {
  auto* const function = library.function<int(int*)>(name);
  int value = 0;
  return function != nullptr && function(&value) == 0 ? std::optional(value) : std::nullopt;
}

// Decodes versions: 91002 is cuDNN 9.10.2; 22803 is NCCL 2.28.3.
Version split(size_t number, size_t major_unit) {
  return {.major = static_cast<int>(number / major_unit),
          .minor = static_cast<int>(number % major_unit / 100),
          .patch = static_cast<int>(number % 100)};
}

// The libraries that the wheels bring lie beside torch's folder.
void ask_cuda_libraries(const std::string& site, Software& out) {
  const SharedLibrary runtime({site + "/nvidia/cu13/lib/libcudart.so.13", "libcudart.so.13", "libcudart.so.12"});
  if (const auto version = ask(runtime, "cudaRuntimeGetVersion")) out.runtime = cuda_version(*version);
  const SharedLibrary nccl({site + "/nvidia/nccl/lib/libnccl.so.2", "libnccl.so.2"});
  if (const auto version = ask(nccl, "ncclGetVersion")) out.nccl = split(static_cast<size_t>(*version), 10000);
  const SharedLibrary cudnn({site + "/nvidia/cudnn/lib/libcudnn.so.9", "libcudnn.so.9"});
  if (auto* const version = cudnn.function<size_t()>("cudnnGetVersion")) out.cudnn = split(version(), 10000);
}

void ask_driver(Software& out) {
  const SharedLibrary driver({"libcuda.so.1"});
  if (const auto version = ask(driver, "cuDriverGetVersion")) out.driver_cuda = cuda_version(*version);
}

// Asks NVML for the driver's version and the devices, without a CUDA context on any of them.
void ask_nvml(Software& out) {
  const SharedLibrary nvml({"libnvidia-ml.so.1"});
  auto* const init = nvml.function<int()>("nvmlInit_v2");
  if (init == nullptr || init() != 0) return;
  std::array<char, 96> text{};
  if (auto* const version = nvml.function<int(char*, unsigned)>("nvmlSystemGetDriverVersion")) {
    if (version(text.data(), text.size()) == 0) out.driver = find_version(text.data());
  }
  struct Memory {
    unsigned long long total, free, used;
  };
  unsigned count = 0;
  auto* const get_count = nvml.function<int(unsigned*)>("nvmlDeviceGetCount_v2");
  auto* const get_device = nvml.function<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
  auto* const get_name = nvml.function<int(void*, char*, unsigned)>("nvmlDeviceGetName");
  auto* const get_memory = nvml.function<int(void*, Memory*)>("nvmlDeviceGetMemoryInfo");
  if (get_count == nullptr || get_device == nullptr || get_count(&count) != 0) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    void* device = nullptr;
    if (get_device(i, &device) != 0) continue;
    Gpu gpu;
    Memory memory{};
    if (get_name != nullptr && get_name(device, text.data(), text.size()) == 0) gpu.name = text.data();
    if (get_memory != nullptr && get_memory(device, &memory) == 0) gpu.bytes = memory.total;
    out.gpus.push_back(gpu);
  }
  if (auto* const shutdown = nvml.function<int()>("nvmlShutdown")) shutdown();
}

std::optional<Version> toolkit_version() {
  FILE* const pipe = popen("nvcc --version 2>/dev/null", "re");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 256> part{};
  while (fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  pclose(pipe);
  const size_t release = text.find("release ");
  return release == std::string::npos ? std::nullopt : find_version(text.substr(release));
}

// MPI may be asked for its version before it is initialised.
std::string mpi_version() {
  const SharedLibrary mpi({"libmpi.so.40", "libmpich.so.12", "libmpi.so.12"});
  auto* const ask_version = mpi.function<int(char*, int*)>("MPI_Get_library_version");
  if (ask_version == nullptr) return "";
  std::string text(8192, '\0');  // the longest of any MPI
  int size = 0;
  if (ask_version(text.data(), &size) != 0) return "";
  return text.substr(0, text.find_first_of(std::string_view(",\n\0", 3)));
}

}  // namespace

Software find_software(const std::string& torch_folder) {
  Software out;
  out.torch_folder = torch_folder;
  out.built_against = libtorch_built_against();
  const Libtorch libtorch = read_libtorch(torch_folder);
  out.libtorch = libtorch.version;
  out.libtorch_cuda = libtorch.cuda;
  ask_cuda_libraries(std::filesystem::path(out.torch_folder).parent_path(), out);
  ask_driver(out);
  ask_nvml(out);
  out.usable_gpus = visible_gpus();
  out.toolkit = toolkit_version();
  out.mpi = mpi_version();
  return out;
}

std::vector<std::string> misfits(const Software& s) {
  std::vector<std::string> out = s.unloadable;
  const auto say = [&out](const auto&... parts) { out.push_back(cat(parts...)); };
  if (!s.libtorch) {
    say("libtorch: not found", s.torch_folder.empty() ? "" : cat(" in ", s.torch_folder), "; install it again");
  }
  if (s.libtorch && s.built_against && s.libtorch != s.built_against) {
    say("libtorch ", s.libtorch->text(), ": Lockstep was built against ", s.built_against->text(), "; build it anew");
  }
  if (s.libtorch_cuda && s.runtime && s.libtorch_cuda->major != s.runtime->major) {
    say("CUDA runtime ", s.runtime->text(), ": libtorch was built for CUDA ", s.libtorch_cuda->text(),
        "; install the runtime of that version");
  }
  if (s.runtime && s.driver_cuda && s.runtime->major > s.driver_cuda->major) {
    say("driver", s.driver ? cat(' ', s.driver->text()) : "", ": offers CUDA ", s.driver_cuda->text(),
        ", the runtime is ", s.runtime->text(), "; update the driver");
  }
  if (s.toolkit && s.libtorch_cuda && s.toolkit->major != s.libtorch_cuda->major) {
    say("CUDA toolkit ", s.toolkit->text(), ": libtorch was built for CUDA ", s.libtorch_cuda->text(),
        "; kernels compiled with it won't go with libtorch");
  }
  if (s.gpus.empty()) return out;
  const std::string device = s.gpus[0].name;
  if (!s.driver_cuda) say(device, ": no CUDA driver (libcuda.so.1); install it, or give the container its libraries");
  if (!s.runtime) say(device, ": no CUDA runtime (libcudart); install the one that libtorch names");
  if (!s.cudnn) say(device, ": no cuDNN (libcudnn.so.9); install it to train there");
  if (s.driver_cuda && s.usable_gpus == 0) {
    say(device, ": CUDA can't use it; see CUDA_VISIBLE_DEVICES, and what nvidia-smi says of the driver");
  }
  if (!s.nccl) say(device, ": no NCCL (libnccl.so.2); install it for more than one GPU");
  return out;
}

}  // namespace lockstep::doctor
