#include "lockstep/nn/kernel_builds.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/hash.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/nn/thread_key.h"

namespace lockstep::nn {
namespace {

// The operators that use oneDNN on a CPU, by their schemas' names: convolutions, products in 16 bits, GELU, recurrent
// layers and attention.
constexpr const char* kOperators[] = {"convolution",
                                      "convolution_backward",
                                      "mkldnn_convolution",
                                      "mkldnn_linear",
                                      "linear",
                                      "mm",
                                      "mm.out",
                                      "addmm",
                                      "addmm.out",
                                      "addmm_",
                                      "bmm",
                                      "bmm.out",
                                      "baddbmm",
                                      "baddbmm.out",
                                      "baddbmm_",
                                      "addbmm",
                                      "addbmm_",
                                      "mv",
                                      "mv.out",
                                      "addmv",
                                      "addmv_",
                                      "gelu",
                                      "gelu_backward",
                                      "mkldnn_rnn_layer",
                                      "mkldnn_rnn_layer_backward",
                                      "_scaled_dot_product_flash_attention_for_cpu",
                                      "_scaled_dot_product_flash_attention_for_cpu_backward"};

// The primitives that oneDNN keeps, of which an operator needs up to about eight; the one used longest ago makes room.
size_t kinds_that_are_kept() {
  constexpr size_t kUsual = 1024, kOfAKind = 8;
  for (const char* name : {"ONEDNN_PRIMITIVE_CACHE_CAPACITY", "DNNL_PRIMITIVE_CACHE_CAPACITY"}) {
    if (const auto said = env(name)) return static_cast<size_t>(std::max(0, std::atoi(said->c_str()))) / kOfAKind;
  }
  return kUsual / kOfAKind;
}

template <typename T>
uint64_t with(uint64_t hash, const T& value) {
  return c10::hash_combine(hash, std::hash<T>()(value));
}

uint64_t with(uint64_t hash, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_nested()) return with(hash, -1);
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
  const bool is_excluded = c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutocastCPU);
  if (is_excluded || !at::autocast::is_autocast_enabled(at::kCPU)) return kind;
  return with(kind, static_cast<int>(at::autocast::get_autocast_dtype(at::kCPU)));
}

void in_turn(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static auto& builds = *new KernelBuilds(kinds_that_are_kept());  // never destroyed: threads may outlive it
  const auto call = [&] {
    const c10::impl::ExcludeDispatchKeyGuard below(kThreadKey);
    op.callBoxed(stack);
  };
  if (!is_on_cpu(op.schema(), *stack)) return call();
  builds.run(kind_of(op, *stack), call);
}

}  // namespace

void KernelBuilds::run(uint64_t kind, const std::function<void()>& call) {
  {
    const std::shared_lock together(calls_);
    if (built_.contains(kind)) return call();
  }
  const std::unique_lock alone(calls_);
  call();
  if (built_.size() >= most_) built_.clear();
  if (most_ > 0) built_.insert(kind);
}

void build_kernels_in_turn(torch::Library& aten) {
  for (const std::string name : kOperators) {
    const size_t dot = name.find('.');
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    if (!c10::Dispatcher::singleton().findSchema({"aten::" + name.substr(0, dot), overload})) {
      throw BugError("libtorch has no operator aten::", name);
    }
    aten.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&in_turn>());
  }
}

}  // namespace lockstep::nn
