#include "lockstep/optim/kernels/average.h"

#include "lockstep/optim/kernels/blocks.h"
#include "lockstep/optim/kernels/device_step.h"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/kernels/average.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

template <typename W, typename G>
void average_all(double share, const Elements<W, G>& e) {
  const hn::ScalableTag<Computed<W>> d;
  for_each_vector(e, [=](const Elements<W, G>& part, size_t at, size_t) {
    const auto weight = load(d, part.parameter + at);
    store(d, lerp(d, load(d, part.average + at), weight, share), part.average + at);
  });
}

void average(double share, const AnyElements& elements) {
  std::visit([&](const auto& e) { average_all(share, e); }, elements);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {

namespace {

HWY_EXPORT(average);

void average_block(double share, const AnyElements& block) { HWY_DYNAMIC_DISPATCH(average)(share, block); }

}  // namespace

void average_parameter(const at::Tensor& parameter, const at::Tensor& average, double share) {
  if (!parameter.is_cpu()) return device::move_average(parameter, average, share);
  for_each_block({.parameter = parameter, .gradient = parameter, .state = {}, .average = &average},
                 [&](const AnyElements& block, size_t) { average_block(share, block); });
}

}  // namespace lockstep::optim
#endif
