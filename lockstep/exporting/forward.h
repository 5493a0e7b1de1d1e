// A network as a function of its inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace lockstep::exporting {

// The network's output for its inputs.
using Forward = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

}  // namespace lockstep::exporting
