// Data parallelism with parameter servers: some ranks keep the weights and the optimizer's state. All ranks push the
// gradients of their lanes to them, and pull the new weights, at each step.
#pragma once

#include <string>
#include <vector>

#include "lockstep/optim/any_optimizer.h"
#include "lockstep/train/ddp_form.h"

namespace lockstep::train {

// Steps are synchronous: a server's sum is of all lanes, in the order of the fold's tree.
class ServerForm final : public DdpForm {
 public:
  // The rank that keeps each of an optimizer's parameters. Throws ConfigError for more servers than parameters.
  static std::vector<int> owners(const optim::AnyOptimizer& optimizer, const TrainOptions& options, int ranks);

  ServerForm(const Parts& parts, const Logger& log);

  std::string first_not_finite() const override;
  static std::string text(const Parts& parts);
};

}  // namespace lockstep::train
