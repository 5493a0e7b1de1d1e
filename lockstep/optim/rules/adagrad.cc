#include "lockstep/optim/rules/adagrad.h"

#include <ATen/ATen.h>

#include <utility>

#include "lockstep/optim/kernels/step.h"
#include "lockstep/optim/option_checks.h"

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for every instruction set, by
// including this file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/optim/rules/adagrad.cc"
#include <hwy/foreach_target.h>

#include "lockstep/optim/kernels/vector_step-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {
namespace {

struct VectorForm {
  static constexpr size_t kLeastStates = 1, kMostStates = 1;  // the sum

  template <size_t kStates, typename D, typename V>
  static void step(D d, const AdagradRule& rule, V& p, V g, V* s) {
    const Constants<D> constant{d};
    if (rule.weight_decay != 0) g = hn::MulAdd(p, constant(rule.weight_decay), g);
    s[0] = hn::MulAdd(g, g, s[0]);
    const V root = hn::Add(hn::Sqrt(s[0]), constant(rule.eps));
    p = hn::Add(p, hn::Div(hn::Mul(g, constant(-rule.lr)), root));
  }
};

void step(const AdagradRule& rule, const AnyElements& elements, const Extras& extras) {
  step_by<VectorForm>(rule, elements, extras);
}

}  // namespace
}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kSum };
constexpr SlotSpec kSlots[] = {{.name = "step", .kind = SlotKind::kCounter}, {.name = "sum"}};

HWY_EXPORT(step);

}  // namespace

void step_elements(const AdagradRule& rule, const AnyElements& elements, const Extras& extras) {
  HWY_DYNAMIC_DISPATCH(step)(rule, elements, extras);
}

void step_tensors(const AdagradRule& rule, device::Tensors& p, const device::Tensors& gradients, device::States& s) {
  const device::Tensors g = device::decayed(p, gradients, rule.weight_decay);
  at::_foreach_addcmul_(s[0], g, g);
  const device::Tensors root = at::_foreach_sqrt(s[0]);
  at::_foreach_add_(root, rule.eps);
  at::_foreach_addcdiv_(p, g, root, -rule.lr);
}

void AdagradOptions::check() const {
  check_not_negative(kName, "lr", lr);
  check_not_negative(kName, "lr_decay", lr_decay);
  check_not_negative(kName, "weight_decay", weight_decay);
  check_not_negative(kName, "initial_accumulator_value", initial_accumulator_value);
  check_not_negative(kName, "eps", eps);
}

Adagrad::Adagrad(const std::vector<torch::optim::OptimizerParamGroup>& groups, AdagradOptions options)
    : OptimizerOf(groups, options) {
  prepare_all();
}

Adagrad::Adagrad(const std::vector<torch::optim::OptimizerParamGroup>& groups) : OptimizerOf(groups) { prepare_all(); }

Adagrad::Adagrad(std::vector<at::Tensor> parameters, AdagradOptions options)
    : Adagrad({torch::optim::OptimizerParamGroup(std::move(parameters))}, options) {}

Adagrad::SparseStep Adagrad::sparse_step(const GroupOptions& options) const {
  return values_of(options).weight_decay == 0 ? SparseStep::kRows : SparseStep::kRefused;
}

std::span<const SlotSpec> Adagrad::slots(const GroupOptions&) const { return kSlots; }

void Adagrad::prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const {
  if (slots[kSum].defined()) return;
  slots[kStep] = new_number();
  slots[kSum] = at::full_like(parameter, values_of(options).initial_accumulator_value);
}

void Adagrad::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const AdagradOptions& o = values_of(options);
  const double count = count_step(slots[kStep]);
  const AdagradRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                         .lr = o.lr / (1 + (count - 1) * o.lr_decay),
                         .weight_decay = o.weight_decay,
                         .eps = o.eps};
  step_parameter(rule, step.operands({&slots[kSum]}), step.extras);
}

template class OptimizerOf<Adagrad, AdagradOptions>;

}  // namespace lockstep::optim
#endif
