// Converts an optimizer's state between its plain form (optim) and a checkpoint's tree.
#pragma once

#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/optim/state.h"

namespace lockstep::loop {

checkpoint::OptimizerState to_values(const optim::OptimizerState& state);

// Elements that are still in a file remain there, but for numbers; `copy` reads them (checkpoint/formats/
// stored_tensor.h). Throws DataError for a value that no option or state has; `file` is for the message.
optim::OptimizerState from_values(const checkpoint::OptimizerState& state, const std::string& file,
                                  optim::CopyElements copy = checkpoint::copy_elements);

}  // namespace lockstep::loop
