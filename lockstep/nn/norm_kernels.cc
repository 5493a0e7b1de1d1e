#include "lockstep/nn/norm_kernels.h"

#include <algorithm>
#include <array>
#include <cstdint>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/nn/norm_kernels.cc"
#include <hwy/foreach_target.h>

#include "lockstep/nn/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::nn::HWY_NAMESPACE {
namespace {

constexpr size_t kBlock = 16384;  // elements: they stay in the first cache
constexpr size_t kMostRows = 64;  // whose sums are fp32, which loses no more than its last bits

template <Activation A>
V activated(V z) {
  if constexpr (A == Activation::kNone) return z;
  const V positive = hn::IfThenZeroElse(hn::Le(z, zero()), z);
  if constexpr (A == Activation::kRelu) return positive;
  const V six = hn::Set(F32(), 6);
  return hn::IfThenElse(hn::Ge(positive, six), six, positive);
}

// The gradient, or 0 where the activation of z is flat. The activation's output may stand for z.
template <Activation A>
V through(V gradient, V z) {
  if constexpr (A == Activation::kNone) return gradient;
  const V left = hn::IfThenZeroElse(hn::Le(z, zero()), gradient);
  if constexpr (A == Activation::kRelu) return left;
  return hn::IfThenZeroElse(hn::Ge(z, hn::Set(F32(), 6)), left);
}

// The affine map of one vector of columns.
template <typename Part>
struct Columns {
  Columns(const Affine& affine, size_t c, size_t count)
      : mean(Part::template load<Float>(affine.mean, c, count)),
        scale(Part::template load<Float>(affine.scale, c, count)),
        bias(Part::template load<Float>(affine.bias, c, count)) {}
  V z(V centred) const { return hn::MulAdd(centred, scale, bias); }
  V mean, scale, bias;
};

// Calls visit(Whole or Tail, row, column, count) for each vector of each row.
template <typename Visit>
void for_vectors(const Extent& extent, Visit visit) {
  const size_t lanes = hn::Lanes(F32());
  for (size_t row = 0; row < extent.rows; ++row) {
    size_t c = 0;
    for (; c + lanes <= extent.columns; c += lanes) visit(Whole(), row * extent.columns + c, c, lanes);
    if (c < extent.columns) visit(Tail(), row * extent.columns + c, c, extent.columns - c);
  }
}

void add_to(double* sums, V part, size_t count) {
  std::array<float, kMostLanes> values;
  hn::StoreU(part, F32(), values.data());
  for (size_t i = 0; i < count; ++i) sums[i] += static_cast<double>(values[i]);
}
void add_to(double* sums, V part) {
  const hn::ScalableTag<double> wide;
  const hn::Half<F32> half;
  const size_t lanes = hn::Lanes(wide);
  const auto add = [&](double* to, auto values) { hn::StoreU(hn::Add(hn::LoadU(wide, to), values), wide, to); };
  add(sums, hn::PromoteTo(wide, hn::LowerHalf(half, part)));
  add(sums + lanes, hn::PromoteTo(wide, hn::UpperHalf(half, part)));
}

// Adds up two values of each element of `rows` rows: adder(index, a, b) adds those of element `index` to a and b. Takes
// two vectors at a time, so that an addition need not wait for the one before.
template <typename Adder>
void add_columns(size_t rows, size_t stride, const Adder& left, const Adder& right, const Sums& sums) {
  V a = zero(), b = zero(), c = zero(), d = zero();
  for (size_t row = 0; row < rows; ++row) {
    left(row * stride, a, b);
    right(row * stride, c, d);
  }
  const size_t lanes = hn::Lanes(F32());
  add_to(sums.first, a);
  add_to(sums.second, b);
  add_to(sums.first + lanes, c);
  add_to(sums.second + lanes, d);
}
template <typename Adder>
void add_columns(size_t rows, size_t stride, const Adder& adder, size_t count, const Sums& sums) {
  V a = zero(), b = zero();
  for (size_t row = 0; row < rows; ++row) adder(row * stride, a, b);
  add_to(sums.first, a, count);
  add_to(sums.second, b, count);
}

// make(Whole or Tail, index, column, count) makes the adder of these columns, whose first element is `index`.
template <typename Make>
void add_all(const Extent& extent, const Sums& sums, Make make) {
  const size_t lanes = hn::Lanes(F32()), stride = extent.columns;
  const size_t block = std::clamp<size_t>(kBlock / stride, 16, kMostRows);
  for (size_t row = 0; row < extent.rows; row += block) {
    const size_t rows = std::min(block, extent.rows - row), index = row * stride;
    size_t c = 0;
    for (; c + 2 * lanes <= stride; c += 2 * lanes) {
      add_columns(rows, stride, make(Whole(), index + c, c, lanes), make(Whole(), index + c + lanes, c + lanes, lanes),
                  {sums.first + c, sums.second + c});
    }
    for (; c + lanes <= stride; c += lanes) {
      add_columns(rows, stride, make(Whole(), index + c, c, lanes), lanes, {sums.first + c, sums.second + c});
    }
    if (c < stride) {
      add_columns(rows, stride, make(Tail(), index + c, c, stride - c), stride - c, {sums.first + c, sums.second + c});
    }
  }
}

template <typename E>
void moments(const Extent& extent, const void* x, const float* shift, const Sums& sums) {
  add_all(extent, sums, [=](auto part, size_t index, size_t c, size_t count) {
    using Part = decltype(part);
    return [=, at = Part::template load<Float>(shift, c, count)](size_t offset, V& a, V& b) {
      const V centred = hn::Sub(Part::template load<E>(x, index + offset, count), at);
      a = hn::Add(a, centred);
      b = hn::MulAdd(centred, centred, b);
    };
  });
}

template <typename E, Activation A>
void normalise_as(const Extent& extent, const void* x, const void* residual, const Affine& affine, void* y) {
  for_vectors(extent, [=](auto part, size_t i, size_t c, size_t count) {
    using Part = decltype(part);
    const Columns<Part> columns(affine, c, count);
    V z = columns.z(hn::Sub(Part::template load<E>(x, i, count), columns.mean));
    if (residual != nullptr) z = hn::Add(z, Part::template load<E>(residual, i, count));
    Part::template store<E>(activated<A>(z), y, i, count);
  });
}

// g and x - mean of one vector.
template <typename E, Activation A, typename Part>
struct Masked {
  Masked(const Gradient& from, const Columns<Part>& columns, size_t i, size_t count)
      : centred(hn::Sub(Part::template load<E>(from.x, i, count), columns.mean)) {
    const V dy = Part::template load<E>(from.dy, i, count);
    g = through<A>(dy, from.y == nullptr ? columns.z(centred) : Part::template load<E>(from.y, i, count));
  }
  V centred, g;
};

template <typename E, Activation A>
void gradient_sums(const Extent& extent, const Gradient& from, void* masked, const Sums& sums) {
  add_all(extent, sums, [=](auto part, size_t index, size_t c, size_t count) {
    using Part = decltype(part);
    return [=, columns = Columns<Part>(from.affine, c, count)](size_t offset, V& a, V& b) {
      const Masked<E, A, Part> at(from, columns, index + offset, count);
      if (masked != nullptr) Part::template store<E>(at.g, masked, index + offset, count);
      a = hn::Add(a, at.g);
      b = hn::MulAdd(at.g, at.centred, b);
    };
  });
}

template <typename E, Activation A>
void input_gradient_as(const Extent& extent, const Gradient& from, const float* slope, const float* offset, void* dx) {
  for_vectors(extent, [=](auto part, size_t i, size_t c, size_t count) {
    using Part = decltype(part);
    const Columns<Part> columns(from.affine, c, count);
    const Masked<E, A, Part> at(from, columns, i, count);
    const V rest = hn::MulAdd(at.centred, Part::template load<Float>(slope, c, count),
                              Part::template load<Float>(offset, c, count));
    Part::template store<E>(hn::MulAdd(at.g, columns.scale, rest), dx, i, count);
  });
}

template <typename Run>
void with_element(Element element, Run run) {
  if (element == Element::kFloat) return run(Float());
  if (element == Element::kBrain) return run(Brain());
  run(Half());
}

template <Activation A>
struct Is {
  static constexpr Activation kActivation = A;
};
template <typename Run>
void with_activation(Activation activation, Run run) {
  if (activation == Activation::kNone) return run(Is<Activation::kNone>());
  if (activation == Activation::kRelu) return run(Is<Activation::kRelu>());
  run(Is<Activation::kRelu6>());
}

void moments_of_any(const Extent& extent, const void* x, const float* shift, const Sums& sums) {
  with_element(extent.element, [&](auto e) { moments<decltype(e)>(extent, x, shift, sums); });
}

void normalise_any(const Extent& extent, const void* x, const void* residual, const Affine& affine,
                   Activation activation, void* y) {
  with_element(extent.element, [&](auto e) {
    with_activation(activation, [&](auto a) {
      normalise_as<decltype(e), decltype(a)::kActivation>(extent, x, residual, affine, y);
    });
  });
}

void gradient_sums_of_any(const Extent& extent, const Gradient& from, void* masked, const Sums& sums) {
  with_element(extent.element, [&](auto e) {
    with_activation(from.activation,
                    [&](auto a) { gradient_sums<decltype(e), decltype(a)::kActivation>(extent, from, masked, sums); });
  });
}

void input_gradient_of_any(const Extent& extent, const Gradient& from, const float* slope, const float* offset,
                           void* dx) {
  with_element(extent.element, [&](auto e) {
    with_activation(from.activation, [&](auto a) {
      input_gradient_as<decltype(e), decltype(a)::kActivation>(extent, from, slope, offset, dx);
    });
  });
}

}  // namespace
}  // namespace lockstep::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::nn {

HWY_EXPORT(moments_of_any);
HWY_EXPORT(normalise_any);
HWY_EXPORT(gradient_sums_of_any);
HWY_EXPORT(input_gradient_of_any);

void add_moments(const Extent& extent, const void* x, const float* shift, const Sums& sums) {
  HWY_DYNAMIC_DISPATCH(moments_of_any)(extent, x, shift, sums);
}
void normalise(const Extent& extent, const void* x, const void* residual, const Affine& affine, Activation activation,
               void* y) {
  HWY_DYNAMIC_DISPATCH(normalise_any)(extent, x, residual, affine, activation, y);
}
void add_gradient_sums(const Extent& extent, const Gradient& gradient, void* masked, const Sums& sums) {
  HWY_DYNAMIC_DISPATCH(gradient_sums_of_any)(extent, gradient, masked, sums);
}
void input_gradient(const Extent& extent, const Gradient& gradient, const float* slope, const float* offset, void* dx) {
  HWY_DYNAMIC_DISPATCH(input_gradient_of_any)(extent, gradient, slope, offset, dx);
}

}  // namespace lockstep::nn
#endif
