#include "lockstep/parallel/lane_losses.h"

#include <functional>

#include "lockstep/comm/fold_tree.h"

namespace lockstep::parallel {

double sum_of(const std::vector<LaneLoss>& losses) {
  comm::LeafFold<double> sum;
  for (const LaneLoss& loss : losses) {
    sum.push(loss.value.defined() ? loss.weight * loss.value.item<double>() : 0, std::plus<>());
  }
  return sum.finish(std::plus<>());
}

}  // namespace lockstep::parallel
