#include "lockstep/optim/kernels/kernels.h"

#include "lockstep/optim/kernels/blocks.h"
#include "lockstep/optim/kernels/device_pass.h"

namespace lockstep::optim {

void step_parameter(const Rule& rule, const Operands& operands, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return step_on_device(rule, operands, extras);
  for_each_block(operands, [&](const AnyElements& block, size_t) { run_pass(rule, block, extras); });
}

void average_parameter(const at::Tensor& parameter, const at::Tensor& average, double share) {
  if (!parameter.is_cpu()) return average_on_device(parameter, average, share);
  for_each_block({.parameter = parameter, .gradient = parameter, .state = {}, .average = &average},
                 [&](const AnyElements& block, size_t) { run_average(share, block); });
}

}  // namespace lockstep::optim
