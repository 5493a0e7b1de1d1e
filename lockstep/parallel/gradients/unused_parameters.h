// The parameters that a step does not use: the option find_unused_parameters.
//
// Before a lane's backward, a walk over the loss's graph tells which parameters the loss does not depend on; they add
// +0 in that lane. At the step's end the ranks count together which parameters some lane has used. The others get no
// gradient, rather than one of 0, so that optimizers leave them alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/gradients/named_parameter.h"

namespace lockstep::parallel {

// Parameters are numbered as in the list that the constructor gets; lanes are this rank's.
class UnusedParameters {
 public:
  // `walks`: false without the option.
  UnusedParameters(std::vector<NamedParameter> parameters, bool walks);

  void begin_step();
  // Returns the parameters that `loss`, of one lane, does not depend on, in backward's order: the last one first.
  // Without the option it returns none.
  std::vector<size_t> unused_in(const at::Tensor& loss);
  // Counts a use of a parameter that no walk has found: by a pass by hand, or by a step before whose gradient is kept.
  void use(size_t parameter) { ++lanes_using_[parameter]; }
  // Ends the step. A collective with the option.
  void finish(comm::Communicator& comm);

  // After finish(): whether no lane of any rank has used the parameter. False without the option.
  bool unused(size_t parameter) const { return unused_[parameter]; }
  // The number of graphs that were walked over since construction.
  size_t walks() const { return walked_; }

 private:
  std::vector<NamedParameter> parameters_;
  bool walks_;
  size_t walked_ = 0;
  std::vector<double> lanes_using_;  // by parameter: lanes of this rank that use it in this step
  std::vector<bool> unused_;         // by parameter: as the last step found
};

}  // namespace lockstep::parallel
