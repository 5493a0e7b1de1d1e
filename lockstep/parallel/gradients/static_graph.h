// The option static_graph: the first step counts each lane's gradients by parameter, and later steps are held to that.
//
// A parameter has more than one in a lane where a part of the model runs a backward of its own within backward, as a
// custom Function that checkpoints activations does. They are added up, as .grad would, and go on after the last.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/parallel/gradients/named_parameter.h"

namespace lockstep::parallel {

// Parameters are numbered as in the list that the constructor gets; lanes are this rank's.
class StaticGraph {
 public:
  explicit StaticGraph(std::vector<NamedParameter> parameters);

  void begin_step();
  // Takes a gradient of a lane. Returns the sum of the lane's once it is complete, which in the first step it never is;
  // else an undefined tensor. Throws ConfigError for one more than in the first step.
  at::Tensor add(size_t parameter, size_t lane, at::Tensor gradient);
  // Counts a gradient of a lane that goes another way than through add().
  void count(size_t parameter, size_t lane) { ++lane_at(lane).count[parameter]; }
  // Returns what add() has kept at the lane's end, and forgets it.
  at::Tensor rest(size_t parameter, size_t lane);
  // Whether the first step is over, and the lane has this many gradients of the parameter.
  bool expects(size_t parameter, size_t lane, size_t gradients) const;
  // Whether the lane has had a gradient of the parameter in this step.
  bool has(size_t parameter, size_t lane) const { return lane < lanes_.size() && lanes_[lane].count[parameter] > 0; }
  // Counts a use that is no gradient of this step: of one from before that is kept. Ranks may differ in it.
  void use(size_t parameter) { used_[parameter] = 1; }
  // Ends the step. A collective, in the first one and where no rank had a gradient of some parameter in that. Throws
  // ConfigError where a lane had fewer gradients than in the first step.
  void finish(comm::Communicator& comm);
  // After finish(): whether no lane of any rank had a gradient of the parameter in the first step, and no rank has
  // counted a use of it in this one.
  bool unused(size_t parameter) const { return usual_[parameter] == 0 && used_[parameter] == 0; }

 private:
  struct Lane {
    std::vector<size_t> expected;   // by parameter: gradients in the first step; empty if the lane had no samples then
    std::vector<size_t> count;      // in this step
    std::vector<at::Tensor> parts;  // by parameter: the sum so far
  };
  Lane& lane_at(size_t lane);
  void learn(comm::Communicator& comm);
  void check_complete() const;
  size_t expected(size_t parameter, size_t lane) const;

  std::vector<NamedParameter> parameters_;
  std::vector<Lane> lanes_;
  std::vector<size_t> usual_;  // by parameter: gradients of a lane that has any, over all ranks
  std::vector<double> used_;   // by parameter: ranks that have counted a use; before finish() this rank
  bool known_ = false;         // the first step is over
};

}  // namespace lockstep::parallel
