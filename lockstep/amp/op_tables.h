// The tables behind the operator lists: Apex's names, and the rules for which libtorch has no query.
#pragma once

#include <c10/core/DeviceType.h>

#include <optional>
#include <span>
#include <string_view>

#include "lockstep/amp/cast_rule.h"

namespace lockstep::amp {

// Returns the rule of an operator ("conv1d.padding") for which libtorch 2.11 has an autocast kernel on `device`.
CastRule libtorch_rule(c10::DeviceType device, std::string_view name);

// Returns whether autocast refuses the operator: on CUDA binary_cross_entropy, whose fp16 loss overflows.
bool refused_by_libtorch(c10::DeviceType device, std::string_view name);

// Returns one of Apex's lists, as the operators of libtorch that its functions became. Operators that promote their
// arguments by themselves (add, mul, eq, …) are not on it.
std::span<const std::string_view> apex_list(CastRule rule);

}  // namespace lockstep::amp
