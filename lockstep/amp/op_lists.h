// Which operators autocast casts the arguments of, and how: libtorch's lists, and changes to them by name.
//
// As Apex's register_half_function and its kin, but by operator: whoever calls it, from whatever module.
#pragma once

#include <c10/core/DeviceType.h>

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/amp/cast_rule.h"

namespace lockstep::amp {

// From now on and in the whole process autocast, on CPU and CUDA, treats this operator by the rule of that name
// (cast_rule.h). "softmax" or "aten::softmax": all its overloads that write to no argument. A later call for the same
// operator replaces the rule. While no other thread runs operators. Throws ConfigError, with the nearest operator, for
// a name that libtorch does not have, and for an operator that only works in place.
void register_half_function(std::string_view name);
void register_float_function(std::string_view name);
void register_promote_function(std::string_view name);

// libtorch's own rule is back; nothing happens where none was registered.
void unregister_function(std::string_view name);

// What Apex's lists have and libtorch's for the CPU lack, registered there (docs/amp-op-lists.md names them). Operators
// that are registered already keep their rules.
void use_apex_lists();

// Operators with their overloads, sorted: "conv1d", "conv1d.padding"; those of aten without its name.
struct OpLists {
  std::vector<std::string> half;
  std::vector<std::string> full;  // fp32
  std::vector<std::string> promote;
};

// The lists in force: libtorch's for `device` (CPU or CUDA), changed by what is registered.
OpLists op_lists(c10::DeviceType device);

}  // namespace lockstep::amp
