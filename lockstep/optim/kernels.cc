#include "lockstep/optim/kernels.h"

#include "lockstep/optim/device_pass.h"
#include "lockstep/optim/pieces.h"

namespace lockstep::optim {

void step_parameter(const Rule& rule, const Operands& operands, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return step_on_device(rule, operands, extras);
  for_each_piece(operands, extras, {}, [&](const auto& part, size_t) { run_pass(rule, part, extras); });
}

void average_parameter(const at::Tensor& parameter, const at::Tensor& average, double share) {
  if (!parameter.is_cpu()) return average_on_device(parameter, average, share);
  const Extras extras{.average_share = share};
  for_each_piece({.parameter = parameter, .gradient = parameter, .state = {}, .average = &average}, extras,
                 {.gradient = false, .weight = false, .state = false}, [&](const auto& part, size_t) {
                   if (part.average != nullptr) run_average(share, part);  // of 16 bits the piece does it
                 });
}

}  // namespace lockstep::optim
