#include "lockstep/optim/kernels/layer_kernels.h"

#include <vector>

#include "lockstep/optim/kernels/blocks.h"
#include "lockstep/optim/kernels/device_pass.h"

namespace lockstep::optim {
namespace {

// Calls run(block) for all and adds its sums up.
template <typename Sums = SquareSums, typename Run>
Sums added(const Operands& operands, const Run& run) {
  std::vector<Sums> blocks(static_cast<size_t>(blocks_of(operands.parameter)));
  for_each_block(operands, [&](const AnyElements& block, size_t number) { blocks[number] = run(block); });
  Sums all{};
  for (const Sums& block : blocks) all += block;
  return all;
}

}  // namespace

SquareSums square_sums(const Operands& operands, double multiplier, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return square_sums_on_device(operands, multiplier, extras);
  return added(operands, [&](const AnyElements& block) { return run_square_sums(multiplier, extras.clip, block); });
}

double gradient_square_sum(const at::Tensor& gradient, double multiplier, const Extras& extras) {
  if (!gradient.is_cpu()) return gradient_square_sum_on_device(gradient, multiplier, extras);
  return added<double>({gradient, gradient}, [&](const AnyElements& block) {
    return run_gradient_square_sum(multiplier, extras.clip, block);
  });
}

SquareSums step_lamb_moments(const LambRule& rule, const Operands& operands, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return lamb_moments_on_device(rule, operands, extras);
  return added(operands, [&](const AnyElements& block) { return run_lamb_moments(rule, extras.clip, block); });
}

void step_lamb(const LambRule& rule, double rate, const Operands& operands, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return lamb_step_on_device(rule, rate, operands, extras);
  for_each_block(operands,
                 [&](const AnyElements& block, size_t) { run_lamb_step(rule, rate, extras.average_share, block); });
}

}  // namespace lockstep::optim
