#include "lockstep/comm/plugins/gpu_facts.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "lockstep/comm/plugins/nccl/gpu_id.h"

namespace {

// The version of the NCCL that libtorch_cuda has loaded: libtorch's own function knows only the one that it was built
// with. 0: it has none.
int nccl_version() {
  auto* const ask = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  int version = 0;
  return ask != nullptr && ask(&version) == 0 ? version : 0;
}

}  // namespace

void lockstep_describe_gpu(int gpu, lockstep::comm::GpuFacts& facts) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  const cudaDeviceProp& found = *at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(gpu));
  facts.name = found.name;
  facts.id = lockstep::comm::id_of_gpu(found);
  facts.capability_major = found.major;
  facts.capability_minor = found.minor;
  facts.bytes = found.totalGlobalMem;
  C10_CUDA_CHECK(cudaDriverGetVersion(&facts.driver));
  C10_CUDA_CHECK(cudaRuntimeGetVersion(&facts.runtime));
  const auto& hooks = at::detail::getCUDAHooks();
  facts.cudnn = hooks.hasCuDNN() ? static_cast<int>(hooks.versionRuntimeCuDNN()) : 0;
  facts.nccl = nccl_version();
}
