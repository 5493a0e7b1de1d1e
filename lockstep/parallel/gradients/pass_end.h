// The end of a backward pass that somebody else has begun.
#pragma once

#include <functional>
#include <memory>

namespace lockstep::parallel {

// Called within a backward pass, such as in a gradient's hook. Calls `then` on the pass's thread when the pass is over.
// A backward that runs within another's, as a custom Function that checkpoints does, ends with the outer one. Returns
// an object that lives until then; it expires without the call if the pass ends with an error.
std::weak_ptr<const bool> at_pass_end(std::function<void()> then);

}  // namespace lockstep::parallel
