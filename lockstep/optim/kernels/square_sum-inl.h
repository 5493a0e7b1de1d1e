// The sum of squares over vectors. Included once for every instruction set.
#if defined(LOCKSTEP_OPTIM_SQUARE_SUM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_OPTIM_SQUARE_SUM_INL_H
#undef LOCKSTEP_OPTIM_SQUARE_SUM_INL_H
#else
#define LOCKSTEP_OPTIM_SQUARE_SUM_INL_H
#endif

#include "lockstep/optim/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

// Σ x² in fp64, for x of type T.
template <typename T>
class SquareSum {
 public:
  using D = hn::ScalableTag<T>;

  SquareSum() : low_(hn::Zero(F64())), high_(hn::Zero(F64())) {}
  void add(hn::Vec<D> x) {
    if constexpr (sizeof(T) == sizeof(double)) {
      low_ = hn::MulAdd(x, x, low_);
    } else {
      const hn::Half<D> half;
      const auto l = hn::PromoteTo(F64(), hn::LowerHalf(half, x)), h = hn::PromoteTo(F64(), hn::UpperHalf(half, x));
      low_ = hn::MulAdd(l, l, low_);
      high_ = hn::MulAdd(h, h, high_);
    }
  }
  double total() const { return hn::GetLane(hn::SumOfLanes(F64(), hn::Add(low_, high_))); }

 private:
  using F64 = hn::ScalableTag<double>;
  hn::Vec<F64> low_, high_;
};

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
