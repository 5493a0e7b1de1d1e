// The state that an optimizer keeps for one parameter: tensors under PyTorch's names.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <span>
#include <string_view>

#include "lockstep/optim/state.h"

namespace lockstep::optim {

// The kinds of state: a tensor like the parameter, or an fp32 tensor without dimensions that counts steps or holds a
// number.
enum class SlotKind { kTensor, kCounter, kNumber };

struct SlotSpec {
  const char* name;    // "momentum_buffer", "exp_avg", "step" …
  bool needed = true;  // a parameter with any state must have it
  SlotKind kind = SlotKind::kTensor;
  constexpr bool is_number() const { return kind != SlotKind::kTensor; }
};

// The tensors in the order of the optimizer's SlotSpecs; undefined where there is none yet.
constexpr size_t kMaxSlots = 4;
using Slots = std::array<at::Tensor, kMaxSlots>;

// A new counter or number at `value`.
at::Tensor new_number(float value = 0);

// Counts one step and returns the new count.
double count_step(at::Tensor& counter);

// Throws ConfigError that begins with `label` unless `named` is a floating-point tensor of the parameter's shape.
void check_like(std::string_view label, const at::Tensor& parameter, const NamedTensor& named);

// Makes slots for the tensors of `state`, in the memory order and dtype of `parameter`, and adds to `copies` what is to
// be copied into them. Throws ConfigError that begins with `label` for a name, shape or dtype that does not fit, and
// for a needed slot without a tensor.
Slots load_slots(std::string_view label, std::span<const SlotSpec> specs, const at::Tensor& parameter,
                 const ParameterState& state, Copies& copies);

}  // namespace lockstep::optim
