#include "lockstep/optim/kernels/square_sums.h"

#include <ATen/ATen.h>

#include "lockstep/optim/kernels/blocks.h"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/kernels/square_sums.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/kernels/square_sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

template <typename W, typename G>
SquareSums sums_of(double multiplier, double clip, const Elements<W, G>& e) {
  const hn::ScalableTag<Computed<W>> d;
  SquareSum<Computed<W>> weights, gradients;
  for_each_vector<false>(e, [&](const Elements<W, G>& part, size_t at, size_t) {
    read_ahead(part.parameter + at);
    read_ahead(part.gradient + at);
    weights.add(load(d, part.parameter + at));
    gradients.add(clipped_gradient(d, load(d, part.gradient + at), multiplier, clip));
  });
  return {weights.total(), gradients.total()};
}

template <typename W, typename G>
double gradient_sum_of(double multiplier, double clip, const Elements<W, G>& e) {
  const hn::ScalableTag<Computed<W>> d;
  SquareSum<Computed<W>> gradients;
  for_each_vector<false>(e, [&](const Elements<W, G>& part, size_t at, size_t) {
    read_ahead(part.gradient + at);
    gradients.add(clipped_gradient(d, load(d, part.gradient + at), multiplier, clip));
  });
  return gradients.total();
}

SquareSums sums(double multiplier, double clip, const AnyElements& elements) {
  return std::visit([&](const auto& e) { return sums_of(multiplier, clip, e); }, elements);
}

double gradient_sum(double multiplier, double clip, const AnyElements& elements) {
  return std::visit([&](const auto& e) { return gradient_sum_of(multiplier, clip, e); }, elements);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {

HWY_EXPORT(sums);
HWY_EXPORT(gradient_sum);

SquareSums square_sums(const Operands& operands, double multiplier, const Extras& extras) {
  return sum_over_blocks<SquareSums>(
      operands, [&](const AnyElements& block) { return HWY_DYNAMIC_DISPATCH(sums)(multiplier, extras.clip, block); });
}

double gradient_square_sum(const at::Tensor& gradient, double multiplier, const Extras& extras) {
  return sum_over_blocks<double>({gradient, gradient}, [&](const AnyElements& block) {
    return HWY_DYNAMIC_DISPATCH(gradient_sum)(multiplier, extras.clip, block);
  });
}

}  // namespace lockstep::optim
#endif
