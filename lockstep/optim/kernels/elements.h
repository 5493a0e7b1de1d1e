// A parameter in its step as plain arrays, which vector code goes over.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <array>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <variant>

namespace lockstep::optim {

// The parts of a step beside its rule.
struct Extras {
  double clip = std::numeric_limits<double>::infinity();  // clamps the multiplied gradient to [-clip, clip]; NaN stays
  double average_share = 1;                               // average += share · (new weight - average); 1: a copy
};

// The type in which numbers stored as T are computed.
template <typename T>
using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;

// `size` elements of a parameter, stored as W, of its gradient, as G, and of its state. Unused states are nullptr and
// follow the used ones.
template <typename W, typename G = W>
struct Elements {
  W* parameter;
  const G* gradient;
  std::array<W*, 3> state;
  size_t size;
  Computed<W>* average = nullptr;  // of the weights as they are stored; nullptr: none is kept
  G* rounded = nullptr;            // receives a copy of the new weights; nullptr: none is kept
};

// Elements of one type, or fp32 masters with a gradient and a copy of 16 bits. fp16 and bf16 are computed in fp32 and
// rounded to nearest, ties to even, when they are stored; a NaN stays one.
using AnyElements = std::variant<Elements<float>, Elements<double>, Elements<at::BFloat16>, Elements<at::Half>,
                                 Elements<float, at::BFloat16>, Elements<float, at::Half>>;

}  // namespace lockstep::optim
