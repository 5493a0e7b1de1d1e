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

at::Tensor load_counter(std::string_view label, const NamedTensor& named) {
  const at::Tensor& value = named.value;
  const bool number = value.numel() == 1 && !value.is_complex() && value.scalar_type() != at::kBool;
  const double steps = number ? value.item().toDouble() : -1;
  if (!(steps >= 0 && steps <= kMostSteps && steps == std::floor(steps))) {
    throw ConfigError(label, ": \"", named.name, "\" is ", number ? cat(steps) : cat("of shape ", value.sizes()),
                      ", not a count of steps");
  }
  return new_counter(static_cast<float>(steps));
}

at::Tensor load_like(std::string_view label, const at::Tensor& parameter, const NamedTensor& named) {
  check_like(label, parameter, named);
  at::NoGradGuard no_grad;
  return at::empty_like(parameter).copy_(named.value);
}

}  // namespace

at::Tensor new_counter(float steps) { return at::scalar_tensor(steps, at::kFloat); }

double count_step(at::Tensor& counter) { return *counter.mutable_data_ptr<float>() += 1; }

void check_like(std::string_view label, const at::Tensor& parameter, const NamedTensor& named) {
  if (named.value.sizes() == parameter.sizes() && at::isFloatingType(named.value.scalar_type())) return;
  throw ConfigError(label, ": \"", named.name, "\" is ", named.value.toString(), " of shape ", named.value.sizes(),
                    ", and the parameter ", parameter.toString(), " of shape ", parameter.sizes());
}

Slots load_slots(std::string_view label, std::span<const SlotSpec> specs, const at::Tensor& parameter,
                 const ParameterState& state) {
  Slots slots;
  bool any = false;
  for (const NamedTensor& named : state.tensors) {
    const size_t s = slot_named(label, specs, named.name);
    if (slots[s].defined()) throw ConfigError(label, " has \"", named.name, "\" twice");
    if (!named.value.defined()) continue;
    slots[s] = specs[s].counter ? load_counter(label, named) : load_like(label, parameter, named);
    any = true;
  }
  for (size_t s = 0; any && s < specs.size(); ++s) {
    if (specs[s].needed && !slots[s].defined()) throw ConfigError(label, " lacks \"", specs[s].name, "\"");
  }
  return slots;
}

}  // namespace lockstep::optim
