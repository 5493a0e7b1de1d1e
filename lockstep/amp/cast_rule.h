// The three rules by which autocast casts the arguments of a function.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace lockstep::amp {

enum class CastRule {
  kHalf,     // fp32 -> autocast's 16-bit dtype
  kFloat,    // 16 bits -> fp32
  kPromote,  // all -> the widest of them: fp32 where one is fp32, or where both 16-bit dtypes are among them
};

// Casts the arguments of one call: see() each argument first, then cast() each. Tensors on other devices, of fp64 or of
// integers stay as they are. Casts go through libtorch's cache, so a weight is cast once a step. One thread.
class Caster {
 public:
  Caster(CastRule rule, c10::DeviceType device);

  void see(const at::Tensor& tensor);
  at::Tensor cast(const at::Tensor& tensor) const;

  // The same for tensors, optional tensors and lists of either. A cast list is a new one. Anything else stays as it is.
  void see(const c10::IValue& argument);
  c10::IValue cast(const c10::IValue& argument) const;

 private:
  bool is_ours(const at::Tensor& tensor) const;

  CastRule rule_;
  c10::DeviceType device_;
  at::ScalarType to_ = at::ScalarType::Undefined;  // kPromote: the widest seen
};

}  // namespace lockstep::amp
