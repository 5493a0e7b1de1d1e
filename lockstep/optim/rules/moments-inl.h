// The moments that Adam and NAdam share. Included once for every instruction set.
#if defined(LOCKSTEP_OPTIM_MOMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_OPTIM_MOMENTS_INL_H
#undef LOCKSTEP_OPTIM_MOMENTS_INL_H
#else
#define LOCKSTEP_OPTIM_MOMENTS_INL_H
#endif

#include "lockstep/optim/kernels/vector_step-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

// Moves s[0], exp_avg, and s[1], exp_avg_sq.
template <typename D, typename V>
void update_moments(D d, double new_share, double beta2, V g, V* s) {
  const Constants<D> constant{d};
  s[0] = lerp(d, s[0], g, new_share);
  s[1] = hn::MulAdd(hn::Mul(constant(1 - beta2), g), g, hn::Mul(s[1], constant(beta2)));
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
