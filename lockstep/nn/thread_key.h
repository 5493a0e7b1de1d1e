// The dispatcher's key by which operators behave in another way in threads that compute at the same time.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/core/DispatchKey.h>

namespace lockstep::nn {

// Nothing else uses it, and it is above those of autograd and devices. It is on in a thread with a ThreadGenerator, and
// only operators that need it have a kernel there.
constexpr auto kThreadKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Whether the operator's first tensor, or the device that it is given, is the CPU's. Its arguments end the stack.
bool is_on_cpu(const c10::FunctionSchema& schema, const torch::jit::Stack& stack);

}  // namespace lockstep::nn
