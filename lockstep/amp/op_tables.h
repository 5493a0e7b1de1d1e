// Who is on which list: Apex's names, and what libtorch can't be asked.
#pragma once

#include <c10/core/DeviceType.h>

#include <optional>
#include <span>
#include <string_view>

#include "lockstep/amp/cast_rule.h"

namespace lockstep::amp {

// The rule of an operator ("conv1d.padding") for which libtorch 2.11 has an autocast kernel on `device`.
CastRule libtorch_rule(c10::DeviceType device, std::string_view name);

// Whether autocast refuses it instead: CUDA's binary_cross_entropy, whose fp16 loss overflows.
bool refused_by_libtorch(c10::DeviceType device, std::string_view name);

// Apex's lists, as the operators of libtorch that the functions there became. What promotes its arguments by itself
// (add, mul, eq, …) is not among them.
std::span<const std::string_view> apex_list(CastRule rule);

}  // namespace lockstep::amp
