#include "lockstep/nn/thread_key.h"

namespace lockstep::nn {

bool is_on_cpu(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  for (size_t i = stack.size() - schema.arguments().size(); i < stack.size(); ++i) {
    const c10::IValue& value = stack[i];
    if (value.isTensor() && value.toTensor().defined()) return value.toTensor().is_cpu();
    if (value.isDevice()) return value.toDevice().is_cpu();
  }
  return true;
}

}  // namespace lockstep::nn
