#include "lockstep/nn/batch_norm_graph.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "lockstep/nn/batch_norm_passes.h"

namespace lockstep::nn {
namespace {

struct ExchangeHolder : torch::CustomClassHolder {
  std::shared_ptr<StatisticsExchange> exchange;
};

// The sum of fp64 [2, C] over all lanes. The loss is the sum of all lanes', so its derivative by a lane's own values is
// the sum of all lanes' derivatives.
class SumOverLanes : public torch::autograd::Function<SumOverLanes> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& own,
                            c10::intrusive_ptr<ExchangeHolder> holder) {
    context->saved_data["holder"] = c10::IValue::make_capsule(holder);
    return holder->exchange->add(own);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto holder = c10::static_intrusive_pointer_cast<ExchangeHolder>(context->saved_data["holder"].toCapsule());
    return {SumOverLanes::apply(gradients[0], holder), at::Tensor()};
  }
};

at::Tensor over_lanes(const at::Tensor& own, const std::shared_ptr<StatisticsExchange>& exchange) {
  if (exchange == nullptr) return own;
  auto holder = c10::make_intrusive<ExchangeHolder>();
  holder->exchange = exchange;
  return SumOverLanes::apply(own, holder);
}

struct Normalised {
  at::Tensor values, invstd;  // x̂; [C]
};

// x̂ as a function of x, through the batch's statistics too.
Normalised normalised(const SavedUse& use, const at::Tensor& x) {
  const at::Tensor from = x - spread(use.affine[kMean], x);
  if (!use.count.defined()) return {from * spread(use.invstd, x), use.invstd};
  const auto others = all_but_channels(x);
  const at::Tensor sums = over_lanes(at::stack({from.sum(others), from.square().sum(others)}), use.exchange);
  const at::Tensor moments = sums / use.count;  // about the mean: the first is 0, and has a slope
  const at::Tensor invstd = (moments[1] - moments[0].square() + use.eps).rsqrt();
  return {(from - spread(moments[0], x)) * spread(invstd, x), invstd};
}

}  // namespace

DifferentiableGradients differentiable_gradients(const SavedUse& use) {
  const at::Tensor x = use.x.to(at::kDouble);
  const Normalised unit = normalised(use, x);
  const at::Tensor y = use.y.defined() ? use.y.detach() : use.y;
  const at::Tensor g = masked_gradient({use.dy, use.x.detach(), y, use.affine, use.activation});
  const auto others = all_but_channels(x);
  const at::Tensor own = at::stack({g.sum(others), (g * unit.values).sum(others)});
  at::Tensor slope = g;
  if (use.count.defined()) {
    const at::Tensor means = over_lanes(own, use.exchange) / use.count;
    slope = g - spread(means[0], x) - unit.values * spread(means[1], x);
  }
  const at::Tensor scale = use.weight.defined() ? use.weight.to(at::kDouble) * unit.invstd : unit.invstd;
  const auto like_x = [&](const at::Tensor& wide) {
    return wide.to(use.x.scalar_type()).contiguous(use.x.suggest_memory_format());
  };
  return {like_x(slope * spread(scale, x)), own, like_x(g)};
}

}  // namespace lockstep::nn
