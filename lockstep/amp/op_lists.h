// The lists of operators whose arguments autocast casts: libtorch's, and changes to them by name.
//
// These are Apex's register_half_function and its kin, but they apply to an operator, whichever module calls it.
#pragma once

#include <c10/core/DeviceType.h>

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/amp/cast_rule.h"

namespace lockstep::amp {

// Each makes autocast, on CPU and CUDA, treat this operator by the rule of that name (cast_rule.h), from now on in the
// whole process. "softmax" or "aten::softmax" names all its overloads that write to no argument. A later call for the
// same operator replaces the rule. Called while no other thread runs operators. Throws ConfigError, with the nearest
// operator, for a name that libtorch does not have, and for an operator that only works in place.
void register_half_function(std::string_view name);
void register_float_function(std::string_view name);
void register_promote_function(std::string_view name);

// Restores libtorch's own rule; does nothing if none was registered.
void unregister_function(std::string_view name);

// Registers the operators that are on Apex's lists and that libtorch's lists for the CPU lack, on the CPU
// (docs/amp-op-lists.md names them). Operators that are registered already keep their rules.
void use_apex_lists();

// Operators with their overloads, sorted, such as "conv1d" and "conv1d.padding". Those of aten stand without the prefix
// "aten::".
struct OpLists {
  std::vector<std::string> half;
  std::vector<std::string> full;  // fp32
  std::vector<std::string> promote;
};

// Returns the lists in force: libtorch's for `device` (CPU or CUDA), changed by the registered rules.
OpLists op_lists(c10::DeviceType device);

}  // namespace lockstep::amp
