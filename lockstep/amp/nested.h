// Tensors within tuples, lists and dicts, nested in any way, as models take and return them.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::amp {

namespace internal {

template <typename T, template <typename...> typename Kind>
constexpr bool kIs = false;
template <typename... Parts, template <typename...> typename Kind>
constexpr bool kIs<Kind<Parts...>, Kind> = true;

template <typename T>
constexpr bool kIsArray = false;
template <typename T, size_t n>
constexpr bool kIsArray<std::array<T, n>> = true;

// std::map and std::unordered_map.
template <typename T>
concept IsMap = requires(T& dict) {
  typename T::mapped_type;
  dict.begin()->second;
};
// torch::OrderedDict.
template <typename T>
concept IsOrderedDict = requires(T& dict) {
  dict.begin()->key();
  dict.begin()->value();
  dict.items();
};
// c10::Dict and c10::List, copies of which share their elements.
template <typename T>
concept IsC10Dict = requires(T& dict) {
  dict.copy();
  dict.begin()->setValue(dict.begin()->value());
};
template <typename T>
concept IsC10List = requires(T& list) {
  list.copy();
  list.set(0, list.get(0));
};

}  // namespace internal

// Returns the value with f(tensor) in place of each defined tensor in it. Looks into std::optional, pair, tuple,
// vector, array, map and unordered_map, torch::OrderedDict, c10::List and Dict. Anything else is returned as it is.
template <typename T, typename F>
T map_tensors(const T& value, const F& f) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    return value.defined() ? f(value) : value;
  } else if constexpr (internal::kIs<T, std::optional>) {
    return value ? T(map_tensors(*value, f)) : value;
  } else if constexpr (internal::kIs<T, std::tuple> || internal::kIs<T, std::pair>) {
    return std::apply([&](const auto&... each) { return T(map_tensors(each, f)...); }, value);
  } else if constexpr (internal::kIs<T, std::vector> || internal::kIsArray<T>) {
    T out = value;
    if constexpr (!std::is_same_v<typename T::value_type, bool>) {
      for (auto& each : out) each = map_tensors(each, f);
    }
    return out;
  } else if constexpr (internal::IsMap<T>) {
    T out = value;
    for (auto& [key, each] : out) each = map_tensors(each, f);
    return out;
  } else if constexpr (internal::IsC10Dict<T>) {
    T out = value.copy();
    for (const auto& entry : out) entry.setValue(map_tensors(entry.value(), f));
    return out;
  } else if constexpr (internal::IsC10List<T>) {
    T out = value.copy();
    for (size_t i = 0; i < out.size(); ++i) out.set(i, map_tensors(out.get(i), f));
    return out;
  } else if constexpr (internal::IsOrderedDict<T>) {
    T out = value;
    for (auto& item : out) item.value() = map_tensors(item.value(), f);
    return out;
  } else {
    return value;
  }
}

}  // namespace lockstep::amp
