#include "lockstep/nn/conv2d.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "lockstep/nn/windows.h"

namespace lockstep::nn {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

// Thresholds measured on one core with AMX (docs/decisions/0008). A layer with at least kManyWeights input × output
// channels is faster as a matrix product up to kFewPixels output pixels, counted over all images. The weight's
// gradient, whose layout libtorch converts twice and which it computes row by row, is faster so wherever rows are
// short.
constexpr int64_t kManyWeights = 256 * 256;
constexpr int64_t kFewPixels = 384;
constexpr int64_t kShortRow = 12;
constexpr int64_t kMostPixels = 4096;  // bounds the memory of their windows

// libtorch's tracer records its own operations alone.
bool is_ours(const at::Tensor& t) {
  return !torch::jit::tracer::isTracing() && t.is_cpu() && t.dim() == 4 &&
         (t.scalar_type() == at::kBFloat16 || t.scalar_type() == at::kHalf) && t.is_contiguous(kChannelsLast);
}

int64_t pixels_of(const at::Tensor& x, const WindowShape& shape) {
  return x.size(0) * shape.rows(x.size(2)) * shape.columns(x.size(3));
}

bool is_worth_a_product(const at::Tensor& x, const WindowShape& shape) {
  const int64_t count = pixels_of(x, shape);
  return count <= kFewPixels || (count <= kMostPixels && shape.columns(x.size(3)) <= kShortRow);
}

// [N, C, H, W], channels_last -> [N · H · W, C]; [O, I, k, k'], channels_last -> [O, k · k' · I].
at::Tensor pixels(const at::Tensor& x) { return x.permute({0, 2, 3, 1}).reshape({-1, x.size(1)}); }
at::Tensor filters(const at::Tensor& weight) { return weight.permute({0, 2, 3, 1}).reshape({weight.size(0), -1}); }

// Saves the inputs of backward.
void save(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, int64_t stride,
          int64_t padding) {
  context->save_for_backward({x, weight});
  context->saved_data["stride"] = stride;
  context->saved_data["padding"] = padding;
}

WindowShape saved_shape(torch::autograd::AutogradContext* context, const at::Tensor& weight) {
  return {weight.size(2), weight.size(3), context->saved_data["stride"].toInt(),
          context->saved_data["padding"].toInt()};
}

// Both gradients by libtorch's operation, which has derivatives of its own: for create_graph.
torch::autograd::variable_list differentiable(torch::autograd::AutogradContext* context, const at::Tensor& dy,
                                              int64_t groups) {
  const auto saved = context->get_saved_variables();
  const int64_t s = context->saved_data["stride"].toInt(), p = context->saved_data["padding"].toInt();
  const auto [dx, dweight, dbias] = at::convolution_backward(
      dy.to(saved[0].scalar_type()), saved[0], saved[1], at::OptionalIntArrayRef(), {s, s}, {p, p}, {1, 1}, false,
      {0, 0}, groups, {context->needs_input_grad(0), context->needs_input_grad(1), false});
  return {dx, dweight, at::Tensor(), at::Tensor()};
}

class DeepConv : public torch::autograd::Function<DeepConv> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            int64_t stride, int64_t padding) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    save(context, x, weight, stride, padding);
    const WindowShape shape{weight.size(2), weight.size(3), stride, padding};
    if (pixels_of(x, shape) > kFewPixels) return at::conv2d(x, weight, {}, stride, padding);
    return at::mm(windows_of(x, shape), filters(weight).t())
        .view({x.size(0), shape.rows(x.size(2)), shape.columns(x.size(3)), weight.size(0)})
        .permute({0, 3, 1, 2});
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    if (at::GradMode::is_enabled()) return differentiable(context, gradients[0], 1);
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const WindowShape shape = saved_shape(context, weight);
    const at::Tensor dy = gradients[0].to(x.scalar_type()).contiguous(kChannelsLast);
    at::Tensor dx, dweight;
    if (context->needs_input_grad(0)) dx = input_gradient(dy, x, weight, shape);
    if (context->needs_input_grad(1)) {
      dweight = at::mm(pixels(dy).t(), windows_of(x, shape))
                    .view({weight.size(0), shape.height, shape.width, x.size(1)})
                    .permute({0, 3, 1, 2});
    }
    return {dx, dweight, at::Tensor(), at::Tensor()};
  }

 private:
  static at::Tensor input_gradient(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& weight,
                                   const WindowShape& shape) {
    if (pixels_of(x, shape) <= kFewPixels) {
      return sum_of_windows(at::mm(pixels(dy), filters(weight)), x.sizes(), shape);
    }
    const int64_t s = shape.stride, p = shape.padding;
    return std::get<0>(at::convolution_backward(dy, x, weight, at::OptionalIntArrayRef(), {s, s}, {p, p}, {1, 1}, false,
                                                {0, 0}, 1, {true, false, false}));
  }
};

// A depthwise convolution with a stride. Its input gradient costs libtorch ten times as much as all the rest of it.
class StridedDepthwise : public torch::autograd::Function<StridedDepthwise> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            int64_t stride, int64_t padding) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    save(context, x, weight, stride, padding);
    return at::conv2d(x, weight, {}, stride, padding, 1, x.size(1));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    if (at::GradMode::is_enabled()) return differentiable(context, gradients[0], x.size(1));
    const WindowShape shape = saved_shape(context, weight);
    const int64_t s = shape.stride, p = shape.padding;
    const at::Tensor dy = gradients[0].to(x.scalar_type()).contiguous(kChannelsLast);
    at::Tensor dx, dweight;
    if (context->needs_input_grad(0)) dx = depthwise_input_gradient(dy, weight, x.sizes(), shape);
    if (context->needs_input_grad(1)) {
      dweight = std::get<1>(at::convolution_backward(dy, x, weight, at::OptionalIntArrayRef(), {s, s}, {p, p}, {1, 1},
                                                     false, {0, 0}, x.size(1), {false, true, false}));
    }
    return {dx, dweight, at::Tensor(), at::Tensor()};
  }
};

bool is_depthwise(const at::Tensor& x, const at::Tensor& weight, int64_t groups) {
  return groups == x.size(1) && groups == weight.size(0) && weight.size(1) == 1 &&
         weight.size(2) * weight.size(3) <= 49;
}

}  // namespace

at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, int64_t stride, int64_t padding, int64_t groups) {
  at::Tensor input = x, filter = weight;
  if (x.is_cpu() && at::autocast::is_autocast_enabled(at::kCPU)) {
    const at::ScalarType dtype = at::autocast::get_autocast_dtype(at::kCPU);
    input = at::autocast::cached_cast(dtype, x, at::kCPU);
    filter = at::autocast::cached_cast(dtype, weight, at::kCPU);
  }
  const WindowShape shape{weight.size(2), weight.size(3), stride, padding};
  const bool ours = input.numel() > 0 && is_ours(input) && filter.dim() == 4 &&
                    input.scalar_type() == filter.scalar_type() && shape.rows(input.size(2)) > 0 &&
                    shape.columns(input.size(3)) > 0;
  if (ours && stride > 1 && groups > 1 && is_depthwise(input, filter, groups)) {
    return StridedDepthwise::apply(input, filter, stride, padding);
  }
  const bool deep = ours && groups == 1 && is_ours(filter) && input.size(1) == filter.size(1) &&
                    filter.size(0) * filter.size(1) >= kManyWeights && is_worth_a_product(input, shape);
  if (deep) return DeepConv::apply(input, filter, stride, padding);
  return at::conv2d(input, filter, {}, stride, padding, 1, groups);
}

at::Tensor Conv2dImpl::forward(const at::Tensor& x) {
  const auto* const padding = std::get_if<torch::ExpandingArray<2>>(&options.padding());
  const auto is_square = [](const torch::ExpandingArray<2>& pair) { return (*pair)[0] == (*pair)[1]; };
  if (x.dim() != 4 || options.bias() || padding == nullptr || !is_square(*padding) || !is_square(options.stride()) ||
      (*options.dilation())[0] != 1 || (*options.dilation())[1] != 1 ||
      !std::holds_alternative<torch::enumtype::kZeros>(options.padding_mode())) {
    return torch::nn::Conv2dImpl::forward(x);
  }
  return conv2d(x, weight, (*options.stride())[0], (**padding)[0], options.groups());
}

}  // namespace lockstep::nn
