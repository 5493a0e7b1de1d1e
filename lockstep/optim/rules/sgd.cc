#include "lockstep/optim/rules/sgd.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lockstep/optim/kernels/step.h"
#include "lockstep/optim/option_checks.h"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/rules/sgd.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/kernels/vector_step-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

struct VectorForm {
  static constexpr size_t kLeastStates = 0, kMostStates = 1;  // the buffer, with momentum

  template <size_t kStates, typename D, typename V>
  static void step(D d, const SgdRule& rule, V& p, V g, V* s) {
    const Constants<D> constant{d};
    if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
    if constexpr (kStates == 1) {
      const V momentum = constant(rule.momentum);
      s[0] = rule.first ? g : hn::MulAdd(g, constant(rule.undamped), hn::Mul(s[0], momentum));
      g = rule.nesterov ? hn::MulAdd(s[0], momentum, g) : s[0];
    }
    if (rule.shrink != 1) p = hn::Mul(p, constant(rule.shrink));
    p = hn::MulAdd(g, constant(-rule.lr), p);
  }
};

void step(const SgdRule& rule, const AnyElements& elements, const Extras& extras) {
  step_by<VectorForm>(rule, elements, extras);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {
namespace {

constexpr SlotSpec kSlots[] = {{.name = "momentum_buffer"}};

HWY_EXPORT(step);

}  // namespace

void step_elements(const SgdRule& rule, const AnyElements& elements, const Extras& extras) {
  HWY_DYNAMIC_DISPATCH(step)(rule, elements, extras);
}

void step_tensors(const SgdRule& rule, device::Tensors& p, const device::Tensors& gradients, device::States& s) {
  device::Tensors g = device::decayed(p, gradients, rule.weight_decay);
  if (rule.momentum != 0) {
    if (rule.first) {
      at::_foreach_copy_(s[0], g);
    } else {
      at::_foreach_mul_(s[0], rule.momentum);
      at::_foreach_add_(s[0], g, rule.undamped);
    }
    g = rule.nesterov ? at::_foreach_add(g, s[0], rule.momentum) : s[0];
  }
  if (rule.shrink != 1) at::_foreach_mul_(p, rule.shrink);
  at::_foreach_sub_(p, g, rule.lr);
}

void step_guarded(const SgdRule& rule, device::Tensors& p, const device::Tensors& g, device::States& s,
                  const at::Tensor& overflow) {
  if (rule.shrink != 1) {  // libtorch's kernel has none
    if (overflow.defined()) throw BugError("sgd: a guarded step that shrinks the weights");
    return step_tensors(rule, p, g, s);
  }
  at::_fused_sgd_(p, g, s[0], rule.weight_decay, rule.momentum, rule.lr, 1 - rule.undamped, rule.nesterov,
                  /*maximize=*/false, rule.first && rule.momentum != 0, /*grad_scale=*/{}, device::maybe(overflow));
}

void SgdOptions::check() const {
  check_not_negative(kName, "lr", lr);
  check_not_negative(kName, "momentum", momentum);
  check_not_negative(kName, "weight_decay", weight_decay);
  check_range(kName, "dampening", dampening, -HUGE_VAL, HUGE_VAL);
  if (nesterov && (momentum == 0 || dampening != 0)) {
    throw ConfigError(kName, ": nesterov needs a momentum above 0 and no dampening, not momentum ", momentum,
                      " and dampening ", dampening);
  }
}

SGD::SparseStep SGD::sparse_step(const GroupOptions& options) const {
  const SgdOptions& o = values_of(options);
  if (o.weight_decay != 0) return SparseStep::kRefused;  // PyTorch's, too
  return o.momentum == 0 ? SparseStep::kRows : SparseStep::kDense;
}

std::span<const SlotSpec> SGD::slots(const GroupOptions&) const { return kSlots; }

void SGD::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const SgdOptions& o = values_of(options);
  at::Tensor& buffer = slots[0];
  const bool first = !buffer.defined();
  const bool used = o.momentum != 0;
  if (used && first) buffer = at::zeros_like(step.parameter);
  const SgdRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                     .lr = o.lr,
                     .weight_decay = o.weight_decay,
                     .momentum = o.momentum,
                     .undamped = 1 - o.dampening,
                     .nesterov = o.nesterov,
                     .first = first};
  step_parameter(rule, step.operands({used ? &buffer : nullptr}), step.extras);
}

template class OptimizerOf<SGD, SgdOptions>;

}  // namespace lockstep::optim
#endif
