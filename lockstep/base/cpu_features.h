// What the CPU can do that decides how to compute.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// What the CPU computes natively in 16 bits.
struct CpuFeatures {
  bool amx_bf16 = false;
  bool amx_fp16 = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool avx512 = false;
  std::string model;  // "Intel(R) Xeon(R) Processor"
};

// From the text of /proc/cpuinfo. A pure function.
CpuFeatures parse_cpu_features(std::string_view cpuinfo);
CpuFeatures detect_cpu_features();

}  // namespace lockstep
