// Which precision --amp auto takes, and which ones this CPU is slow in.
#pragma once

#include <optional>
#include <string>

#include "lockstep/amp/opt_level.h"
#include "lockstep/amp/rates.h"
#include "lockstep/base/cpu_features.h"

namespace lockstep::amp {

struct AutoChoice {
  Policy policy;
  std::string why;  // for people: "5.1 times fp32 here"
};

// O1 in the faster 16-bit dtype, O0 where neither is faster than fp32 by a tenth. fp16, which needs a loss scale, only
// where it is faster than bf16 by a fifth. Pure functions.
AutoChoice auto_level(const Rates& rates);
// By what the CPU multiplies itself, where nothing was measured.
AutoChoice auto_level(const CpuFeatures& features);

// By this machine's rates.
AutoChoice auto_level();

// One line for a policy whose dtype is slow on a CPU: by its rates, where they are known, else by its instructions. ""
// where it is fast, or fp32 is computed in.
std::string slow_warning(const Policy& policy, const CpuFeatures& features, const std::optional<Rates>& rates);

}  // namespace lockstep::amp
