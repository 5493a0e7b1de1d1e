// The pass over raw memory by which the rules step on the CPU. A rule's file includes this once for every instruction
// set, writes the rule for one vector of elements and calls step_by() for the rest.
#if defined(LOCKSTEP_OPTIM_VECTOR_STEP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_OPTIM_VECTOR_STEP_INL_H
#undef LOCKSTEP_OPTIM_VECTOR_STEP_INL_H
#else
#define LOCKSTEP_OPTIM_VECTOR_STEP_INL_H
#endif

#include "lockstep/optim/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

template <typename Form, size_t kStates, typename D, typename R, typename E>
void step_vector(D d, const R& rule, const Extras& extras, const E& e, size_t at) {
  using V = hn::Vec<D>;
  write_ahead(e.parameter + at);
  read_ahead(e.gradient + at);
  V weight = load(d, e.parameter + at);
  const V g = clipped_gradient(d, load(d, e.gradient + at), rule.multiplier, extras.clip);
  V s[3] = {hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (size_t k = 0; k < kStates; ++k) {
    write_ahead(e.state[k] + at);
    s[k] = load(d, e.state[k] + at);
  }
  Form::template step<kStates>(d, rule, weight, g, s);
  for (size_t k = 0; k < kStates; ++k) store(d, s[k], e.state[k] + at);
  store_weight(d, weight, extras.average_share, e, at);
}

template <typename Form, size_t kStates, typename R, typename W, typename G>
void step_all(const R rule, const Extras extras, const Elements<W, G>& e) {
  const hn::ScalableTag<Computed<W>> d;
  for_each_vector(
      e, [=](const Elements<W, G>& part, size_t at, size_t) { step_vector<Form, kStates>(d, rule, extras, part, at); });
}

// Compiles one loop for each number of states that the rule may have, and takes that of the elements.
template <typename Form, size_t kStates, typename R, typename E>
void step_states(const R& rule, const Extras& extras, const E& e) {
  if constexpr (kStates < Form::kMostStates) {
    if (e.state[kStates] != nullptr) return step_states<Form, kStates + 1>(rule, extras, e);
  }
  step_all<Form, kStates>(rule, extras, e);
}

// Steps the elements by the vector form of their rule, a struct with
//   kLeastStates, kMostStates        how many states the rule may have
//   step<kStates>(d, rule, p, g, s)  updates the weight p and the states s from the multiplied, clipped gradient g;
//                                    each is one vector
// hn::MulAdd(a, b, c) is a · b + c, rounded once where the machine can.
template <typename Form, typename R>
void step_by(const R& rule, const AnyElements& elements, const Extras& extras) {
  std::visit([&](const auto& e) { step_states<Form, Form::kLeastStates>(rule, extras, e); }, elements);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
