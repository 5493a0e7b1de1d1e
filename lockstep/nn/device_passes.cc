#include "lockstep/nn/device_passes.h"

#include <ATen/ATen.h>

#include <atomic>

namespace lockstep::nn::device {
namespace {

std::atomic<int> takes_all = 0;  // the number of TakesAll

// Rows of channels in the dtype in which the kernels compute on x.
at::Tensor computed(const at::Tensor& x, const at::Tensor& rows) {
  return rows.to(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
}

// (x - mean) · scale + bias: BatchNorm in evaluation with a variance of 1.
at::Tensor mapped(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& scale, const at::Tensor& bias) {
  at::Tensor y = at::empty_like(x), saved_mean = at::empty({0}, mean.options()), saved_invstd = saved_mean.clone();
  if (x.numel() == 0) return y;
  at::native_batch_norm_out(y, saved_mean, saved_invstd, x, scale, bias, mean, at::ones_like(mean), /*training=*/false,
                            /*momentum=*/0, /*eps=*/0);
  return y;
}

at::Tensor mapped(const at::Tensor& x, const at::Tensor& affine) {
  const at::Tensor rows = computed(x, affine);
  return mapped(x, rows[kMean], rows[kScale], rows[kBias]);
}

// dy where the activation lets it through, else 0.
at::Tensor let_through(const BackwardInputs& in) {
  if (in.activation == Activation::kNone) return in.dy;
  const at::Tensor z = in.y.defined() ? in.y : mapped(in.x, in.affine);
  if (in.activation == Activation::kRelu) return at::threshold_backward(in.dy, z, 0);
  return at::hardtanh_backward(in.dy, z, 0, 6);
}

}  // namespace

bool takes(const at::Tensor& x) { return !x.is_cpu() || takes_all > 0; }

TakesAll::TakesAll() { ++takes_all; }
TakesAll::~TakesAll() { --takes_all; }

Moments moments_of(const at::Tensor& x) {
  if (x.numel() == 0) return no_moments(x);
  const double count = static_cast<double>(x.numel() / x.size(1));
  const auto [mean, variance] = at::batch_norm_update_stats(x, {}, {}, /*momentum=*/0);
  return {at::full({1}, count, x.options().dtype(at::kDouble)), mean.to(at::kDouble),
          variance.to(at::kDouble).mul_(count)};
}

at::Tensor normalised(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& affine,
                      Activation activation) {
  at::Tensor y = mapped(x, affine);
  if (residual.defined()) y.add_(residual);
  if (activation == Activation::kRelu) y.relu_();
  if (activation == Activation::kRelu6) y.clamp_(0, 6);
  return y;
}

at::Tensor gradient_sums(const BackwardInputs& inputs, at::Tensor* masked) {
  const at::Tensor g = let_through(inputs);
  if (masked != nullptr) *masked = g;
  if (g.numel() == 0) return at::zeros({2, g.size(1)}, g.options().dtype(at::kDouble));
  const at::Tensor mean = computed(inputs.x, inputs.affine[kMean]), one = at::ones_like(mean);
  // The gradients of a weight and a bias where the inverse deviation is 1.
  const auto [none, product, sum] = at::native_batch_norm_backward(g, inputs.x, one, {}, {}, mean, one, /*train=*/true,
                                                                   /*eps=*/0, /*output_mask=*/{false, true, true});
  return at::stack({sum, product}).to(at::kDouble);
}

at::Tensor input_gradient(const BackwardInputs& inputs, const at::Tensor& line) {
  const at::Tensor& x = inputs.x;
  const at::Tensor rows = computed(x, inputs.affine), slope_and_offset = computed(x, line);
  at::Tensor dx = mapped(x, rows[kMean], slope_and_offset[0], slope_and_offset[1]);
  return dx.addcmul_(let_through(inputs), spread(rows[kScale], x));
}

}  // namespace lockstep::nn::device
