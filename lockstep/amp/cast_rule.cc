#include "lockstep/amp/cast_rule.h"

#include <ATen/autocast_mode.h>

namespace lockstep::amp {

Caster::Caster(CastRule rule, c10::DeviceType device) : rule_(rule), device_(device) {
  if (rule == CastRule::kHalf) to_ = at::autocast::get_autocast_dtype(device);
  if (rule == CastRule::kFloat) to_ = at::kFloat;
}

bool Caster::is_ours(const at::Tensor& tensor) const { return at::autocast::is_eligible(tensor, device_); }

void Caster::see(const at::Tensor& tensor) {
  if (rule_ != CastRule::kPromote || !is_ours(tensor)) return;
  const bool first = to_ == at::ScalarType::Undefined;
  to_ = first ? tensor.scalar_type() : c10::promoteTypes(to_, tensor.scalar_type());
}

at::Tensor Caster::cast(const at::Tensor& tensor) const {
  return is_ours(tensor) ? at::autocast::cached_cast(to_, tensor, device_) : tensor;
}

void Caster::see(const c10::IValue& argument) {
  if (argument.isTensor()) {
    see(argument.toTensor());
  } else if (argument.isTensorList()) {
    for (const at::Tensor& each : argument.toTensorVector()) see(each);
  } else if (argument.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& each : argument.toOptionalTensorVector()) {
      if (each) see(*each);
    }
  }
}

c10::IValue Caster::cast(const c10::IValue& argument) const {
  if (argument.isTensor()) return cast(argument.toTensor());
  if (argument.isTensorList()) {
    c10::List<at::Tensor> out;
    for (const at::Tensor& each : argument.toTensorVector()) out.push_back(cast(each));
    return out;
  }
  if (argument.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> out;
    for (const std::optional<at::Tensor>& each : argument.toOptionalTensorVector()) {
      out.push_back(each ? std::optional(cast(*each)) : std::nullopt);
    }
    return out;
  }
  return argument;
}

}  // namespace lockstep::amp
