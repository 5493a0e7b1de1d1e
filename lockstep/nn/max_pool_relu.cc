#include "lockstep/nn/max_pool_relu.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <vector>

#include "lockstep/nn/pool_kernels.h"

namespace lockstep::nn {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;
constexpr int64_t kGrain = 16384;  // outputs that are worth a thread

// libtorch's tracer records its own operations alone.
bool is_ours(const at::Tensor& x) {
  return !torch::jit::tracer::isTracing() && x.dim() == 4 && x.is_cpu() &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && x.is_contiguous(kChannelsLast) &&
         x.size(1) >= static_cast<int64_t>(least_channels()) && x.size(2) >= 2 && x.size(3) >= 2 && x.size(0) > 0;
}

// Calls visit(row) for each row of outputs of each image, on libtorch's intra-op threads.
template <typename T, typename Visit>
void for_rows(const at::Tensor& input, const at::Tensor& output, const at::Tensor& origin, Visit visit) {
  const int64_t height = output.size(2);
  const int64_t input_row = input.size(3) * input.size(1);
  const int64_t output_row = output.size(3) * output.size(1);
  const auto at_input = static_cast<T*>(input.data_ptr());
  const auto at_output = static_cast<T*>(output.data_ptr());
  const auto at_origin = origin.data_ptr<Origin>();
  at::parallel_for(0, output.size(0) * height, kGrain / output_row + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* const top = at_input + (row / height * input.size(2) + row % height * 2) * input_row;
      visit(PoolRow<T>{.top = top,
                       .bottom = top + input_row,
                       .output = at_output + row * output_row,
                       .origin = at_origin + row * output_row,
                       .pixels = static_cast<size_t>(output.size(3)),
                       .channels = static_cast<size_t>(output.size(1))});
    }
  });
}

template <typename Visit>
void for_rows_of_any(const at::Tensor& input, const at::Tensor& output, const at::Tensor& origin, Visit visit) {
  if (input.scalar_type() == at::kFloat) {
    for_rows<float>(input, output, origin, visit);
  } else {
    for_rows<uint16_t>(input, output, origin, visit);
  }
}

// Backward of libtorch's operations, which have derivatives of their own: `gradient` goes to the place in its window
// that its output came from.
at::Tensor differentiable(const at::Tensor& gradient, const at::Tensor& origin, at::IntArrayRef sizes) {
  std::vector<at::Tensor> places;
  for (int64_t place = 0; place < kNone; ++place) places.push_back(gradient.masked_fill(origin.ne(place), 0));
  const int64_t height = gradient.size(2), width = gradient.size(3);
  const at::Tensor windows = at::stack(places, -1).view({sizes[0], sizes[1], height, width, 2, 2});
  const at::Tensor pixels = windows.permute({0, 1, 2, 4, 3, 5}).reshape({sizes[0], sizes[1], 2 * height, 2 * width});
  return at::constant_pad_nd(pixels, {0, sizes[3] - 2 * width, 0, sizes[2] - 2 * height}).contiguous(kChannelsLast);
}

class MaxPoolRelu : public torch::autograd::Function<MaxPoolRelu> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    const auto format = x.options().memory_format(kChannelsLast);
    const at::Tensor output = at::empty({x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2}, format);
    const at::Tensor origin = at::empty(output.sizes(), format.dtype(at::kByte));
    for_rows_of_any(x, output, origin, [](const auto& row) { pool_row(row); });
    context->save_for_backward({origin});
    context->saved_data["input_sizes"] = x.sizes();
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor origin = context->get_saved_variables()[0];
    const auto sizes = context->saved_data["input_sizes"].toIntVector();
    if (at::GradMode::is_enabled()) return {differentiable(gradients[0], origin, sizes)};
    const at::Tensor gradient = gradients[0].contiguous(kChannelsLast);
    const at::Tensor result = at::empty(sizes, gradient.options().memory_format(kChannelsLast));
    if (sizes[2] % 2 != 0 || sizes[3] % 2 != 0) result.zero_();
    for_rows_of_any(result, gradient, origin, [](const auto& row) { unpool_row(row); });
    return {result};
  }
};

}  // namespace

at::Tensor max_pool_relu(const at::Tensor& x) {
  return is_ours(x) ? MaxPoolRelu::apply(x) : at::max_pool2d(x, {2, 2}).relu_();
}

}  // namespace lockstep::nn
