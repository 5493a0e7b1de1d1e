// The precision that --amp auto chooses, and the warning for one that this CPU is slow in.
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

// Chooses O1 in the faster 16-bit dtype, or O0 if neither is faster than fp32 by a tenth. Chooses fp16, which needs a
// loss scale, only if it is faster than bf16 by a fifth. A pure function.
AutoChoice auto_level(const Rates& rates);
// Chooses by the CPU's instructions, where nothing was measured. A pure function.
AutoChoice auto_level(const CpuFeatures& features);

// Chooses by this machine's rates (rates_of_this_machine()).
AutoChoice auto_level();

// Returns one line for a policy whose dtype is slow on a CPU, judged by its rates where they are known, else by its
// instructions. Returns "" if the dtype is fast, or if the policy computes in fp32.
std::string slow_warning(const Policy& policy, const CpuFeatures& features, const std::optional<Rates>& rates);

}  // namespace lockstep::amp
