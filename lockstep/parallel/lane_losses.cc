#include "lockstep/parallel/lane_losses.h"

#include <algorithm>
#include <functional>

#include "lockstep/comm/fold_tree.h"
#include "lockstep/parallel/numbers_on_their_way.h"

namespace lockstep::parallel {

namespace {

// The numbers of the values that are defined, in their order.
double folded(const std::vector<LaneLoss>& losses, const std::vector<double>& values) {
  comm::LeafFold<double> sum;
  auto value = values.begin();
  for (const LaneLoss& loss : losses) sum.push(loss.value.defined() ? loss.weight * *value++ : 0, std::plus<>());
  return sum.finish(std::plus<>());
}

}  // namespace

LateNumber sum_of(const std::vector<LaneLoss>& losses) {
  const auto is_there = [](const LaneLoss& loss) { return !loss.value.defined() || loss.value.is_cpu(); };
  if (std::ranges::all_of(losses, is_there)) {
    std::vector<double> values;
    for (const LaneLoss& loss : losses) {
      if (loss.value.defined()) values.push_back(loss.value.item<double>());
    }
    return folded(losses, values);
  }
  std::vector<NumbersOnTheirWay> on_their_way;
  for (const LaneLoss& loss : losses) {
    if (loss.value.defined()) on_their_way.emplace_back(loss.value);
  }
  return LateNumber([losses, on_their_way] {
    std::vector<double> values;
    for (const NumbersOnTheirWay& each : on_their_way) values.push_back(each.read().item<double>());
    return folded(losses, values);
  });
}

}  // namespace lockstep::parallel
