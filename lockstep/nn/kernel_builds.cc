#include "lockstep/nn/kernel_builds.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/hash.h>

#include <mutex>

#include "lockstep/nn/thread_key.h"

namespace lockstep::nn {
namespace {

// The operators that use oneDNN on a CPU: its convolutions, products in 16 bits, recurrent layers and attention.
constexpr const char* kOperators[] = {"convolution",
                                      "convolution_backward",
                                      "mkldnn_convolution",
                                      "mkldnn_linear",
                                      "linear",
                                      "mm",
                                      "addmm",
                                      "bmm",
                                      "baddbmm",
                                      "addbmm",
                                      "mv",
                                      "addmv",
                                      "mkldnn_rnn_layer",
                                      "mkldnn_rnn_layer_backward",
                                      "_scaled_dot_product_flash_attention_for_cpu",
                                      "_scaled_dot_product_flash_attention_for_cpu_backward"};

template <typename T>
uint64_t with(uint64_t hash, const T& value) {
  return c10::hash_combine(hash, std::hash<T>()(value));
}

uint64_t with(uint64_t hash, const at::Tensor& tensor) {
  if (!tensor.defined()) return with(hash, -1);
  hash = with(with(hash, static_cast<int>(tensor.scalar_type())), tensor.dim());
  for (const int64_t size : tensor.sizes()) hash = with(hash, size);
  if (tensor.layout() != at::kStrided) return hash;
  for (const int64_t stride : tensor.strides()) hash = with(hash, stride);
  return with(hash, tensor.requires_grad());
}

uint64_t with(uint64_t hash, const c10::IValue& value) {
  if (value.isTensor()) return with(hash, value.toTensor());
  if (value.isInt()) return with(hash, value.toInt());
  if (value.isBool()) return with(hash, value.toBool());
  if (value.isDouble()) return with(hash, value.toDouble());
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) hash = with(hash, item);
  }
  return with(hash, static_cast<int>(value.isNone()));
}

uint64_t kind_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const size_t arguments = op.schema().arguments().size();
  uint64_t kind = std::hash<c10::OperatorName>()(op.operator_name());
  for (size_t i = stack.size() - arguments; i < stack.size(); ++i) kind = with(kind, stack[i]);
  kind = with(with(kind, at::get_num_threads()), c10::GradMode::is_enabled());
  if (!at::autocast::is_autocast_enabled(at::kCPU)) return kind;
  return with(kind, static_cast<int>(at::autocast::get_autocast_dtype(at::kCPU)));
}

void in_turn(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static auto& builds = *new KernelBuilds;  // never destroyed: threads may outlive it
  builds.run(kind_of(op, *stack), [&] {
    const c10::impl::ExcludeDispatchKeyGuard below(kThreadKey);
    op.callBoxed(stack);
  });
}

}  // namespace

void KernelBuilds::run(uint64_t kind, const std::function<void()>& call) {
  {
    const std::shared_lock together(calls_);
    if (built_.contains(kind)) return call();
  }
  const std::unique_lock alone(calls_);
  call();
  built_.insert(kind);
}

void build_kernels_in_turn(torch::Library& aten) {
  for (const char* name : kOperators) aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&in_turn>());
}

}  // namespace lockstep::nn
