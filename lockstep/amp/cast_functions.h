// Casts for user-defined functions, as Apex's decorators make them, and a scope without casts.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/amp/cast_rule.h"

namespace lockstep::amp {

// Turns autocast off on every device: within this scope each operation computes in the dtypes that it is given. This
// thread only; scopes nest, in AutocastScope and around it.
class DisableCasts {
 private:
  c10::impl::ExcludeDispatchKeyGuard guard_{c10::autocast_dispatch_keyset};
};

namespace internal {

template <typename T, typename... Kinds>
constexpr bool kIsOneOf = (std::is_same_v<std::remove_cvref_t<T>, Kinds> || ...);
template <typename T>
constexpr bool kIsTensor = std::is_convertible_v<T, const at::Tensor&>;
template <typename T>
constexpr bool kHasTensors = kIsOneOf<T, std::optional<at::Tensor>, std::vector<at::Tensor>>;

// Calls visit(tensor) for each tensor in an argument.
template <typename T, typename Visit>
void each_tensor(const T& argument, const Visit& visit) {
  if constexpr (kIsTensor<T>) {
    visit(static_cast<const at::Tensor&>(argument));
  } else if constexpr (kIsOneOf<T, std::optional<at::Tensor>>) {
    if (argument) visit(*argument);
  } else if constexpr (kIsOneOf<T, std::vector<at::Tensor>>) {
    for (const at::Tensor& each : argument) visit(each);
  }
}

// Returns the argument with its tensors cast, or any other argument unchanged.
template <typename T>
decltype(auto) cast(const Caster& caster, T&& argument) {
  if constexpr (kIsTensor<T>) {
    return caster.cast(static_cast<const at::Tensor&>(argument));
  } else if constexpr (kHasTensors<T>) {
    std::remove_cvref_t<T> out = std::forward<T>(argument);
    if constexpr (kIsOneOf<T, std::optional<at::Tensor>>) {
      if (out) out = caster.cast(*out);
    } else {
      for (at::Tensor& each : out) each = caster.cast(each);
    }
    return out;
  } else {
    return static_cast<T&&>(argument);
  }
}

// Whether autocast is on for this kind of device, on this thread.
bool casts_on(c10::DeviceType device);

template <typename Function>
auto cast_function(CastRule rule, Function function) {
  return [rule, function = std::move(function)]<typename... Arguments>(Arguments&&... arguments) -> decltype(auto) {
    std::optional<c10::DeviceType> device;
    const auto find = [&device](const at::Tensor& tensor) {
      if (!device && tensor.defined() && casts_on(tensor.device().type())) device = tensor.device().type();
    };
    (each_tensor(arguments, find), ...);
    if (!device) return function(std::forward<Arguments>(arguments)...);
    Caster caster(rule, *device);
    (each_tensor(arguments, [&caster](const at::Tensor& tensor) { caster.see(tensor); }), ...);
    return function(cast(caster, std::forward<Arguments>(arguments))...);
  };
}

}  // namespace internal

// Each returns a function that casts its arguments while autocast is on, by the rule of that name (cast_rule.h), and
// then calls `function`. It casts Tensors, std::optional<Tensor>s and std::vector<Tensor>s. The operators within
// `function` still follow autocast; a DisableCasts in the function prevents that. The result can be called wherever
// `function` can.
template <typename Function>
auto half_function(Function function) {
  return internal::cast_function(CastRule::kHalf, std::move(function));
}
template <typename Function>
auto float_function(Function function) {
  return internal::cast_function(CastRule::kFloat, std::move(function));
}
template <typename Function>
auto promote_function(Function function) {
  return internal::cast_function(CastRule::kPromote, std::move(function));
}

}  // namespace lockstep::amp
