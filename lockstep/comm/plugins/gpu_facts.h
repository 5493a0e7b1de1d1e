// What the plug-in liblockstep_cuda.so (nccl_plugin.h) tells of a GPU and of the libraries below it.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::comm {

struct GpuFacts {
  std::string name;  // "NVIDIA H200"
  std::string id;    // of this GPU among all machines': "GPU-5f0c…"
  int capability_major = 0, capability_minor = 0;
  uint64_t bytes = 0;  // of memory
  // Versions as their libraries number them; 0: there is none.
  int driver = 0;   // the newest CUDA that it offers: 13000 is 13.0
  int runtime = 0;  // CUDA's
  int cudnn = 0;    // 91002 is 9.10.2
  int nccl = 0;     // 22803 is 2.28.3
};

}  // namespace lockstep::comm

// An entry point of the plug-in. `gpu` is the GPU's number among those that this process sees. Initialises CUDA in this
// process. Throws c10::Error if CUDA can't use the GPU.
extern "C" void lockstep_describe_gpu(int gpu, lockstep::comm::GpuFacts& facts);
