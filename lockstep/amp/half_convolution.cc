#include "lockstep/amp/half_convolution.h"

#include <ATen/ops/convolution_backward_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/convolution_compositeexplicitautograd_dispatch.h>
#include <torch/library.h>

#include <mutex>

#include "lockstep/base/cpu_features.h"

namespace lockstep::amp {
namespace {

using at::Tensor;

bool is_half(const Tensor& tensor) { return tensor.scalar_type() == at::kHalf; }
Tensor wide(const Tensor& tensor) { return tensor.to(at::kFloat); }
Tensor narrow(const Tensor& tensor) { return tensor.defined() ? tensor.to(at::kHalf) : tensor; }

Tensor forward(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, c10::SymIntArrayRef stride,
               c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
               c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  const auto run = [&](const Tensor& x, const Tensor& w, const std::optional<Tensor>& b) {
    return at::compositeexplicitautograd::convolution_symint(x, w, b, stride, padding, dilation, transposed,
                                                             output_padding, groups);
  };
  if (!is_half(input) || !is_half(weight)) return run(input, weight, bias);
  const bool biased = bias && bias->defined();
  return narrow(run(wide(input), wide(weight), biased ? std::optional(wide(*bias)) : std::nullopt));
}

std::tuple<Tensor, Tensor, Tensor> backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                                            at::OptionalSymIntArrayRef bias_sizes, c10::SymIntArrayRef stride,
                                            c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                                            c10::SymIntArrayRef output_padding, c10::SymInt groups,
                                            std::array<bool, 3> output_mask) {
  const auto run = [&](const Tensor& dy, const Tensor& x, const Tensor& w) {
    return at::compositeexplicitautograd::convolution_backward_symint(dy, x, w, bias_sizes, stride, padding, dilation,
                                                                      transposed, output_padding, groups, output_mask);
  };
  if (!is_half(grad_output) || !is_half(input)) return run(grad_output, input, weight);
  const auto [dx, dw, db] = run(wide(grad_output), wide(input), wide(weight));
  return {narrow(dx), narrow(dw), narrow(db)};
}

}  // namespace

void widen_slow_half_convolutions() {
  static std::once_flag once;
  std::call_once(once, [] {
    const CpuFeatures cpu = detect_cpu_features();
    if (cpu.amx_fp16) return;
    // Kept as long as the process, since autograd may run backward at its end; a leak checker finds it by the static.
    static auto* const library =
        new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, uint32_t{__LINE__});
    library->impl("convolution_backward", TORCH_FN(backward));
    if (!cpu.avx512_fp16) library->impl("convolution", TORCH_FN(forward));
  });
}

}  // namespace lockstep::amp
