// Opt levels, as Apex named them, and which of them suits a CPU.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>

#include "lockstep/base/cpu_features.h"

namespace lockstep::amp {

enum class OptLevel { kO0, kO1 };

// "O0", "O1". Throws ConfigError for anything else: O2 and O3 are not available yet, and 01 has a zero for its letter.
OptLevel parse_opt_level(std::string_view name);

// What a model computes in: O0 fp32, O1 fp32 weights with the operations that gain by it in `dtype`.
struct Policy {
  OptLevel level = OptLevel::kO0;
  c10::ScalarType dtype = c10::ScalarType::BFloat16;

  bool casts() const { return level != OptLevel::kO0; }
  std::string name() const;  // "O0 float32", "O1 bfloat16"
};

// O1 where the CPU multiplies bf16 matrices itself, else O0.
OptLevel auto_level(const CpuFeatures& features);

}  // namespace lockstep::amp
