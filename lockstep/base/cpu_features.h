// The CPU features that decide which arithmetic is fast.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// The CPU's vector extensions, above all those that compute in 16 bits.
struct CpuFeatures {
  bool amx_bf16 = false;
  bool amx_fp16 = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool avx512 = false;
  std::string model;  // "Intel(R) Xeon(R) Processor"
};

// Reads the features from the text of /proc/cpuinfo. A pure function.
CpuFeatures parse_cpu_features(std::string_view cpuinfo);
// The features of this machine's CPU.
CpuFeatures detect_cpu_features();

}  // namespace lockstep
