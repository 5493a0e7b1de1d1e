#include "lockstep/optim/layer_kernels.h"

#include <vector>

#include "lockstep/optim/device_pass.h"
#include "lockstep/optim/pieces.h"

namespace lockstep::optim {
namespace {

// Calls run(piece) for all and adds its sums up.
template <typename Run>
SquareSums added(const Operands& operands, Touches touches, const Run& run) {
  std::vector<SquareSums> blocks(static_cast<size_t>(blocks_of(operands.parameter)));
  for_each_piece(operands, {}, touches, [&](const auto& part, size_t block) { blocks[block] += run(part); });
  SquareSums all;
  for (const SquareSums& block : blocks) all += block;
  return all;
}

Operands without_average(const Operands& o) { return {o.parameter, o.gradient, o.state, nullptr, o.rounded}; }

}  // namespace

SquareSums square_sums(const Operands& operands, double multiplier, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return square_sums_on_device(operands, multiplier, extras);
  return added({operands.parameter, operands.gradient}, {.weight = false, .state = false},
               [&](const auto& part) { return run_square_sums(multiplier, extras.clip, part); });
}

SquareSums step_lamb_moments(const LambRule& rule, const Operands& operands, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return lamb_moments_on_device(rule, operands, extras);
  return added(without_average(operands), {.weight = false},
               [&](const auto& part) { return run_lamb_moments(rule, extras.clip, part); });
}

void step_lamb(const LambRule& rule, double rate, const Operands& operands, const Extras& extras) {
  if (!operands.parameter.is_cpu()) return lamb_step_on_device(rule, rate, operands, extras);
  for_each_piece(operands, extras, {.gradient = false, .state = false},
                 [&](const auto& part, size_t) { run_lamb_step(rule, rate, extras.average_share, part); });
}

}  // namespace lockstep::optim
