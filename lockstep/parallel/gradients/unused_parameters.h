// The parameters that a step does not use: the options find_unused_parameters and static_graph.
//
// Before a lane's backward, a walk over the loss's graph tells which parameters the loss does not depend on; they add
// +0 in that lane. At the step's end the ranks count together which parameters some lane has used. The others get no
// gradient, rather than one of 0, so that optimizers leave them alone. A static graph is walked in the first step
// alone, and every later step has to use the same parameters.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/gradients/named_parameter.h"

namespace lockstep::parallel {

// Parameters are numbered as in the list that the constructor gets; lanes are this rank's.
class UnusedParameters {
 public:
  struct Options {
    bool find_unused_parameters = false;  // walks every graph
    bool static_graph = false;            // walks those of the first step
  };

  UnusedParameters(std::vector<NamedParameter> parameters, const Options& options);

  void begin_step();
  // Returns the parameters that `loss`, of lane `lane`, does not depend on, in backward's order: the last one first.
  // Without either option nothing is walked, and it returns none.
  std::vector<size_t> unused_in(const at::Tensor& loss, size_t lane);
  // Counts a use of a parameter that no walk has found: by a pass by hand, or by a step before whose gradient is kept.
  void use(size_t parameter) { ++lanes_using_[parameter]; }
  // Throws ConfigError for a gradient that lane `lane` of a static graph did not have in the first step.
  void check_gradient(size_t parameter, size_t lane) const;
  // Ends the step. A collective, in steps whose graphs are walked.
  void finish(comm::Communicator& comm);

  // After finish(): whether no lane of any rank has used the parameter. False without either option.
  bool unused(size_t parameter) const { return unused_[parameter]; }

 private:
  bool walks() const { return options_.find_unused_parameters || (options_.static_graph && !known_); }
  std::vector<bool> used_in(const at::Tensor& loss, size_t lane);
  bool used_at_first(size_t parameter, size_t lane) const;

  std::vector<NamedParameter> parameters_;
  Options options_;
  std::vector<double> lanes_using_;             // by parameter: lanes of this rank that use it in this step
  std::vector<bool> unused_;                    // by parameter: as the last step found
  bool known_ = false;                          // of a static graph: the first step is over
  std::vector<std::vector<bool>> first_usage_;  // of a static graph: by lane and parameter, as the first step found
};

}  // namespace lockstep::parallel
