#include "lockstep/optim/slots.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

constexpr float kMostSteps = 16777216;  // 2^24: fp32 counts no further

size_t slot_named(std::string_view label, std::span<const SlotSpec> specs, const std::string& name) {
  std::string known;
  for (size_t s = 0; s < specs.size(); ++s) {
    if (name == specs[s].name) return s;
    known += cat(s == 0 ? "" : ", ", specs[s].name);
  }
  throw ConfigError(label, " has \"", name, "\", and this optimizer keeps ", known,
                    ": it was saved by an optimizer of another kind");
}

float number_of(std::string_view label, const NamedTensor& named, const char* wanted) {
  const at::Tensor& value = named.value;
  if (value.numel() == 1 && !value.is_complex() && value.scalar_type() != at::kBool) return value.item().toFloat();
  throw ConfigError(label, ": \"", named.name, "\" is of shape ", value.sizes(), ", not ", wanted);
}

at::Tensor load_counter(std::string_view label, const NamedTensor& named) {
  const float steps = number_of(label, named, "a count of steps");
  if (steps >= 0 && steps <= kMostSteps && steps == std::floor(steps)) return new_number(steps);
  throw ConfigError(label, ": \"", named.name, "\" is ", steps, ", not a count of steps");
}

at::Tensor load_slot(std::string_view label, SlotKind kind, const at::Tensor& parameter, const NamedTensor& named,
                     Copies& copies) {
  if (kind == SlotKind::kCounter) return load_counter(label, named);
  if (kind == SlotKind::kNumber) return new_number(number_of(label, named, "a number"));
  check_like(label, parameter, named);
  const at::NoGradGuard no_grad;
  at::Tensor slot = at::empty_like(parameter);
  copies.emplace_back(slot, named.value);
  return slot;
}

}  // namespace

void copy_plainly(const Copies& copies) {
  const at::NoGradGuard no_grad;
  for (const auto& [to, from] : copies) to.copy_(from);
}

at::Tensor new_number(float value) { return at::scalar_tensor(value, at::kFloat); }

double count_step(at::Tensor& counter) { return *counter.mutable_data_ptr<float>() += 1; }

void check_like(std::string_view label, const at::Tensor& parameter, const NamedTensor& named) {
  if (named.value.sizes() == parameter.sizes() && at::isFloatingType(named.value.scalar_type())) return;
  throw ConfigError(label, ": \"", named.name, "\" is ", named.value.toString(), " of shape ", named.value.sizes(),
                    ", and the parameter ", parameter.toString(), " of shape ", parameter.sizes());
}

Slots load_slots(std::string_view label, std::span<const SlotSpec> specs, const at::Tensor& parameter,
                 const ParameterState& state, Copies& copies) {
  Slots slots;
  bool any = false;
  for (const NamedTensor& named : state.tensors) {
    const size_t s = slot_named(label, specs, named.name);
    if (slots[s].defined()) throw ConfigError(label, " has \"", named.name, "\" twice");
    if (!named.value.defined()) continue;
    slots[s] = load_slot(label, specs[s].kind, parameter, named, copies);
    any = true;
  }
  for (size_t s = 0; any && s < specs.size(); ++s) {
    if (specs[s].needed && !slots[s].defined()) throw ConfigError(label, " lacks \"", specs[s].name, "\"");
  }
  return slots;
}

}  // namespace lockstep::optim
