// The steps of parameters on a device other than the CPU, by libtorch's own kernels for it. Parameters of one rule are
// stepped together: an operation over all of them is a few launches (at::_foreach_*, or one of at::_fused_*), not one
// for each. Nothing waits for the device but square_sum().
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/kernels/operands.h"

namespace lockstep::optim::device {

// One tensor of each parameter.
using Tensors = std::vector<at::Tensor>;
// The tensors of state in fp32 or wider; empty where there is none.
using States = std::array<Tensors, 3>;

// The tensor form of a rule: updates the weights p and the states s in place. g are the multiplied, clipped gradients
// and stay as they are. All are fp32 or wider.
using TensorForm = std::function<void(Tensors& p, const Tensors& g, States& s)>;

// Whether a rule has a guarded form besides, step_guarded(rule, p, g, s, overflow): one launch for many parameters,
// which changes nothing where `overflow` (fp32 [1]) is 1. Undefined stands for 0. Not inherited by rules that derive
// from one.
template <typename Rule>
inline constexpr bool kHasGuardedForm = false;

// Parameters whose operands and extras are of one kind.
class Batch {
 public:
  explicit Batch(const Extras& extras) : extras_(extras) {}
  // Whether another parameter can be stepped with those that are here.
  bool takes(const Operands& operands, const Extras& extras) const;
  void add(const Operands& operands);
  // Takes one step by `form` and stores its results, with the copies and the averages that the operands have.
  void step(double multiplier, const TensorForm& form) const;

 private:
  Extras extras_;
  Tensors parameters_, gradients_, averages_, rounded_;
  States states_;
};

// Collects the steps of an update, and takes those of equal rules together. One thread.
class StepQueue {
 public:
  // `overflow`: optim::Update's. Where it is defined, all rules have a guarded form.
  explicit StepQueue(at::Tensor overflow = {}) : overflow_(std::move(overflow)) {}
  // The tensors of the operands are kept until run(). A rule has a `multiplier`, is compared by ==, and has its tensor
  // form in step_tensors(rule, p, g, s).
  template <typename Rule>
  void add(const Rule& rule, const Operands& operands, const Extras& extras);
  // Has `then` called after the steps.
  void when_done(std::function<void()> then) { when_done_.push_back(std::move(then)); }
  void run();

 private:
  struct Pending {
    virtual ~Pending() = default;
    virtual void run(const at::Tensor& overflow) const = 0;
  };
  template <typename Rule>
  struct PendingOf;

  at::Tensor overflow_;
  std::vector<std::unique_ptr<Pending>> pending_;
  std::vector<std::function<void()>> when_done_;
};

template <typename Rule>
struct StepQueue::PendingOf final : Pending {
  PendingOf(const Rule& its_rule, const Extras& extras) : rule(its_rule), batch(extras) {}
  void run(const at::Tensor& overflow) const override {
    batch.step(rule.multiplier, [&](Tensors& p, const Tensors& g, States& s) {
      if constexpr (kHasGuardedForm<Rule>) return step_guarded(rule, p, g, s, overflow);
      if (overflow.defined()) throw BugError("a rule without a guarded form has an overflow");
      step_tensors(rule, p, g, s);
    });
  }
  Rule rule;
  Batch batch;
};

template <typename Rule>
void StepQueue::add(const Rule& rule, const Operands& operands, const Extras& extras) {
  if (operands.parameter.numel() == 0) return;
  for (const auto& each : pending_) {
    auto* const same = dynamic_cast<PendingOf<Rule>*>(each.get());
    if (same != nullptr && same->rule == rule && same->batch.takes(operands, extras)) return same->batch.add(operands);
  }
  auto first = std::make_unique<PendingOf<Rule>>(rule, extras);
  first->batch.add(operands);
  pending_.push_back(std::move(first));
}

// Moves `average` towards the weights by `share` of the way.
void move_average(const at::Tensor& parameter, const at::Tensor& average, double share);

// The parts of a tensor form.

// A guarded form's overflow as libtorch's fused kernels take it.
inline std::optional<at::Tensor> maybe(const at::Tensor& overflow) {
  return overflow.defined() ? std::optional(overflow) : std::nullopt;
}

// g + weight_decay · p.
Tensors decayed(const Tensors& p, const Tensors& g, double weight_decay);
// The norms of the tensors, [as many].
at::Tensor norms(const Tensors& tensors, double order = 2);
// Each tensor times its factor; `factors` is [as many]. One launch a tensor.
Tensors scaled(const Tensors& tensors, const at::Tensor& factors);

// Σ g² of the multiplied, clipped gradients in fp64; 0 for none. Waits for the device.
double square_sum(const Tensors& gradients, double multiplier, const Extras& extras);

}  // namespace lockstep::optim::device
