// The step of one parameter by a rule: one pass over raw memory on the CPU, libtorch's operations on other devices.
//
// A rule is a struct of one step's numbers, among them the gradient's `multiplier` (negative to maximize). Two
// functions in the rule's file give its arithmetic; the templates below find them by the rule's type:
//   step_elements(rule, elements, extras)  the vector form, over one block of elements (see vector_step-inl.h)
//   step_tensors(rule, p, g, s)            the tensor form, over the tensors of many parameters (see device_step.h)
// SGD's and Adam's have a guarded form besides, by libtorch's fused kernels, which other devices take where they can.
//
// The pass reads the gradient once and writes nothing but the weights and the state. The order of operations and the
// fused multiply-adds are those of PyTorch's own (unfused) optimizers, whose numbers the pass follows to the last bit
// or nearly. libtorch's fused kernels write the multiplied gradient back, divide where a factor is asked for, and in
// 2.11 their SGD updates only the last few of bf16 and fp16 weights on a CPU (other devices give them fp32 copies).
// Every element goes through the same instructions wherever it lies: the result depends neither on memory order nor on
// the number of threads.
#pragma once

#include "lockstep/optim/kernels/blocks.h"
#include "lockstep/optim/kernels/device_step.h"
#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/kernels/operands.h"

namespace lockstep::optim {

// Takes one step by the rule's tensor form. Its values are those of the vector form but for rounding. Any device.
template <typename Rule>
void step_on_device(const Rule& rule, const Operands& operands, const Extras& extras = {}) {
  device::StepQueue queue;
  queue.add(rule, operands, extras);
  queue.run();
}

// Takes one step, or leaves it to the operands' queue: on the CPU by the rule's vector form, with libtorch's intra-op
// threads, elsewhere and in a queue by its tensor form. Throws BugError for a dtype that Operands does not name.
template <typename Rule>
void step_parameter(const Rule& rule, const Operands& operands, const Extras& extras = {}) {
  if (operands.queue != nullptr) return operands.queue->add(rule, operands, extras);
  if (!operands.parameter.is_cpu()) return step_on_device(rule, operands, extras);
  for_each_block(operands, [&](const AnyElements& block, size_t) { step_elements(rule, block, extras); });
}

}  // namespace lockstep::optim
