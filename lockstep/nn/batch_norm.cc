#include "lockstep/nn/batch_norm.h"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "lockstep/base/error.h"
#include "lockstep/nn/batch_norm_graph.h"
#include "lockstep/nn/batch_norm_passes.h"
#include "lockstep/nn/checkpoint.h"
#include "lockstep/nn/device_passes.h"

namespace lockstep::nn {
namespace {

using Maybe = std::optional<at::Tensor>;

// The settings of one use, apart from its tensors; backward reads them again.
struct Use : torch::CustomClassHolder {
  BatchNormArguments arguments;
  Activation activation = Activation::kNone;
  std::shared_ptr<StatisticsExchange> exchange;
  bool by_batch = true;  // normalised by the batch's statistics, not the running ones
  at::Tensor count;      // of values a channel over all lanes, fp64 [1]; undefined if not by the batch
  bool has_residual = false;
};

void check(const at::Tensor& x, const at::Tensor& residual) {
  if (x.dim() < 2 || x.dim() > 5 || !x.is_floating_point()) {
    throw DataError("BatchNorm takes floating-point [N, C] with up to three more dimensions, not ", x.sizes(), " of ",
                    x.scalar_type());
  }
  if (residual.defined() && residual.sizes() != x.sizes()) {
    throw DataError("BatchNorm: the residual is ", residual.sizes(), ", not ", x.sizes(), " as the input");
  }
}

void check_count(int64_t count, const at::Tensor& x) {
  if (count > 1) return;
  throw DataError("BatchNorm in training needs more than one value a channel, and has ", count, ": input ", x.sizes());
}

int64_t values_of_channel(const at::Tensor& x) {
  int64_t count = x.size(0);
  for (int64_t d = 2; d < x.dim(); ++d) count *= x.size(d);
  return count;
}

at::Tensor wide(const at::Tensor& of_channels) { return of_channels.detach().to(at::kDouble); }

void update_running(const BatchNormArguments& arguments, const Moments& moments) {
  if (!arguments.running_mean.defined()) return;
  const auto blend = [&](at::Tensor running, const at::Tensor& now) {
    running.mul_(1 - arguments.momentum).add_(now.to(running.scalar_type()), arguments.momentum);
  };
  blend(arguments.running_mean, moments.mean);
  blend(arguments.running_var, moments.m2 / (moments.count - 1));
}

// The statistics by which x is normalised, as moments.
Moments statistics(Use& use, const at::Tensor& x) {
  const BatchNormArguments& arguments = use.arguments;
  if (!use.by_batch) {
    const at::Tensor mean = wide(arguments.running_mean);
    return {at::ones({1}, mean.options()), mean, wide(arguments.running_var)};
  }
  Moments moments = moments_of(x);
  if (use.exchange) moments = use.exchange->join(moments);
  const bool may_be_few = x.numel() == 0 || values_of_channel(x) < 2;  // only then is the sum over lanes looked at
  if (may_be_few) check_count(static_cast<int64_t>(moments.count.item<double>()), x);
  use.count = moments.count;
  const bool keeps = (!use.exchange || use.exchange->keeps_statistics()) && !is_recomputing();
  if (arguments.training && keeps) update_running(arguments, moments);
  return moments;
}

class FusedBatchNorm : public torch::autograd::Function<FusedBatchNorm> {
 public:
  // A tensor that is not there is passed as nullopt, for apply() asks every tensor for its device.
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const Maybe& given_weight,
                            const Maybe& given_bias, const Maybe& given_residual, c10::intrusive_ptr<Use> use) {
    const at::Tensor weight = given_weight.value_or(at::Tensor()), bias = given_bias.value_or(at::Tensor()),
                     residual = given_residual.value_or(at::Tensor());
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const Moments moments = statistics(*use, x);
    const at::Tensor invstd = (moments.m2 / moments.count).add_(use->arguments.eps).rsqrt_();
    const at::Tensor scale = weight.defined() ? wide(weight).mul(invstd) : invstd;
    const at::Tensor affine = at::stack({moments.mean, scale, bias.defined() ? wide(bias) : at::zeros_like(scale)});
    const at::Tensor y = normalised(x, residual, affine, use->activation);
    const bool y_tells = use->activation != Activation::kNone && (residual.defined() || device::takes(x));
    context->save_for_backward({x, y_tells ? y : at::Tensor(), weight, bias, affine, invstd});
    context->saved_data["use"] = c10::IValue::make_capsule(use);
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto use = c10::static_intrusive_pointer_cast<Use>(context->saved_data["use"].toCapsule());
    const at::Tensor &x = saved[0], &weight = saved[2], &bias = saved[3], &invstd = saved[5];
    if (at::GradMode::is_enabled()) {
      const auto [dx, sums, g] = differentiable_gradients({.dy = gradients[0],
                                                           .x = x,
                                                           .y = saved[1],
                                                           .weight = weight,
                                                           .affine = saved[4],
                                                           .invstd = invstd,
                                                           .activation = use->activation,
                                                           .eps = use->arguments.eps,
                                                           .count = use->count,
                                                           .exchange = use->exchange});
      return results(weight, bias, dx, sums, use->has_residual ? g : at::Tensor());
    }
    BackwardInputs inputs{as(x, gradients[0]), x, saved[1], saved[4], use->activation};
    at::Tensor masked;
    // On a device the masked gradient costs a pass of its own, and two passes need it.
    const bool keep = use->activation != Activation::kNone && (use->has_residual || device::takes(x));
    const at::Tensor sums = gradient_sums(inputs, keep ? &masked : nullptr);
    sums[1].mul_(invstd);
    if (keep) inputs = {masked, x, {}, saved[4], Activation::kNone};
    const at::Tensor coefficients = line(*use, sums, inputs.affine, invstd);
    const at::Tensor dx = context->needs_input_grad(0) ? input_gradient(inputs, coefficients) : at::Tensor();
    return results(weight, bias, dx, sums, use->has_residual ? inputs.dy : at::Tensor());
  }

 private:
  // `sums`: Σg and Σg·x̂ of the lane's own values.
  static torch::autograd::variable_list results(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& dx,
                                                const at::Tensor& sums, const at::Tensor& dresidual) {
    return {dx, weight.defined() ? sums[1].to(weight.scalar_type()) : at::Tensor(),
            bias.defined() ? sums[0].to(bias.scalar_type()) : at::Tensor(), dresidual, at::Tensor()};
  }

  // Returns dy in x's dtype and strides.
  static at::Tensor as(const at::Tensor& x, const at::Tensor& dy) {
    return dy.strides() == x.strides() && dy.scalar_type() == x.scalar_type() ? dy : at::empty_like(x).copy_(dy);
  }

  // The line of dx = scale · (g - Σg / n - x̂ · Σ(g·x̂) / n): slope · (x - mean) + offset, to which scale · g is added.
  static at::Tensor line(const Use& use, const at::Tensor& own, const at::Tensor& affine, const at::Tensor& invstd) {
    if (!use.by_batch) return at::zeros_like(own);
    const at::Tensor sums = use.exchange ? use.exchange->add(own) : own;
    const at::Tensor share = affine[kScale] / -use.count;
    return at::stack({sums[1] * share * invstd, sums[0] * share});
  }
};

// cuDNN's BatchNorm takes 16-bit values with fp32 parameters only. These are such copies of a layer whose parameters
// have 16 bits, too; after it the statistics go back. libtorch's own kernels would take twice the time.
class WideParameters {
 public:
  explicit WideParameters(const BatchNormArguments& of) : of_(of), wide_(of) {
    for (at::Tensor* each : {&wide_.weight, &wide_.bias, &wide_.running_mean, &wide_.running_var}) {
      if (each->defined()) *each = each->to(at::kFloat);
    }
  }
  const BatchNormArguments& arguments() const { return wide_; }
  void store_statistics() const {
    if (!of_.training || !of_.running_mean.defined()) return;
    at::Tensor(of_.running_mean).copy_(wide_.running_mean);
    at::Tensor(of_.running_var).copy_(wide_.running_var);
  }
  static bool helps(const at::Tensor& x, const BatchNormArguments& of) {
    return device::takes(x) && of.weight.defined() && x.element_size() < 4 && of.weight.element_size() < 4;
  }

 private:
  const BatchNormArguments& of_;
  BatchNormArguments wide_;
};

// Runs libtorch's layers one after the other.
at::Tensor layer_by_layer(const at::Tensor& x, const BatchNormArguments& a, Activation activation,
                          const at::Tensor& residual) {
  if (WideParameters::helps(x, a)) {
    const WideParameters wide(a);
    at::Tensor y = layer_by_layer(x, wide.arguments(), activation, residual);
    wide.store_statistics();
    return y;
  }
  const bool by_batch = a.training || !a.running_mean.defined(), apart = by_batch && is_checkpointing();
  if (apart && a.running_mean.defined() && !is_recomputing()) {
    at::batch_norm_update_stats(x.detach(), a.running_mean, a.running_var, a.momentum);
  }
  const at::Tensor none;
  at::Tensor y = at::batch_norm(x, a.weight, a.bias, apart ? none : a.running_mean, apart ? none : a.running_var,
                                by_batch, a.momentum, a.eps, at::globalContext().userEnabledCuDNN());
  if (residual.defined()) y = y + residual;
  if (activation == Activation::kRelu) return y.relu();
  return activation == Activation::kRelu6 ? at::hardtanh(y, 0, 6) : y;
}

}  // namespace

at::Tensor batch_norm(const at::Tensor& x, const BatchNormArguments& arguments, Activation activation,
                      const at::Tensor& residual, std::shared_ptr<StatisticsExchange> exchange) {
  check(x, residual);
  auto use = c10::make_intrusive<Use>();
  use->by_batch = arguments.training || !arguments.running_mean.defined();
  if (!arguments.training) exchange = nullptr;
  const at::Tensor added = residual.defined() ? residual.to(x.scalar_type()) : residual;
  // Our kernels are no operations that libtorch's tracer records.
  if (!exchange && (!has_kernels(x) || device::takes(x) || torch::jit::tracer::isTracing())) {
    if (use->by_batch && x.numel() > 0) check_count(values_of_channel(x), x);
    return layer_by_layer(x, arguments, activation, added);
  }
  use->arguments = arguments;
  use->activation = activation;
  use->exchange = std::move(exchange);
  use->has_residual = residual.defined();
  const bool lies_as_x = !added.defined() || added.strides() == x.strides();
  const auto maybe = [](const at::Tensor& t) { return t.defined() ? Maybe(t) : std::nullopt; };
  return FusedBatchNorm::apply(x, maybe(arguments.weight), maybe(arguments.bias),
                               maybe(lies_as_x ? added : added.contiguous(x.suggest_memory_format())), use);
}

at::Tensor BatchNorm2dImpl::forward(const at::Tensor& x, Activation activation, const at::Tensor& residual) {
  _check_input_dim(x);
  return batch_norm(x,
                    {.weight = weight,
                     .bias = bias,
                     .running_mean = running_mean,
                     .running_var = running_var,
                     .training = is_training(),
                     .momentum = next_momentum(),
                     .eps = options.eps()},
                    activation, residual, exchange_);
}

double BatchNorm2dImpl::next_momentum() {
  const bool counts = is_training() && options.track_running_stats() && num_batches_tracked.defined() &&
                      (!exchange_ || exchange_->keeps_statistics()) && !is_recomputing();
  if (counts) num_batches_tracked += 1;
  if (options.momentum().has_value()) return *options.momentum();
  return counts ? 1 / num_batches_tracked.item<double>() : 0;
}

std::shared_ptr<torch::nn::Module> BatchNorm2dImpl::clone(const std::optional<at::Device>& device) const {
  auto copy = std::make_shared<BatchNorm2dImpl>(options);
  const at::NoGradGuard no_grad;
  const auto take = [&](at::Tensor& to, const at::Tensor& from) {
    if (!from.defined()) return;
    to.set_data(from.to(device.value_or(from.device())).clone());
    to.set_requires_grad(from.requires_grad());
  };
  take(copy->weight, weight);
  take(copy->bias, bias);
  take(copy->running_mean, running_mean);
  take(copy->running_var, running_var);
  take(copy->num_batches_tracked, num_batches_tracked);
  copy->train(is_training());
  return copy;
}

}  // namespace lockstep::nn
