// The graph that one call of a function has made.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace lockstep::nn {

// Returns the leaves that the graph of `outputs` ends in, each once, without `inputs`: the parameters of the function.
// A pure function of the graph. `begin`: the thread's sequence number at the call; older nodes are not the function's
// own. Throws ConfigError for those, and for libtorch's BatchNorms and InstanceNorms in training whose statistics are
// not among `buffers`.
std::vector<at::Tensor> parameters_reached(const std::vector<at::Tensor>& outputs,
                                           const std::vector<at::Tensor>& inputs, uint64_t begin,
                                           const std::vector<at::Tensor>& buffers);

}  // namespace lockstep::nn
