// The end of a backward call that nobody has announced. The call may go through several wrapped networks; what is left
// to do for them is done together at its end, in one order on all ranks, whatever order backward has reached them in.
// A backward that runs within another's, as a custom Function that checkpoints does, ends with the outer one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace lockstep::parallel {

// Called in a hook of the backward call. At the call's end, `finish` and those that others have given are called by
// ascending `order`; if one throws, the rest are not called, and backward throws. Returns an object that lives until
// then, or until the call has ended with an error. Any thread of the engine.
std::weak_ptr<const bool> finish_with_backward(uint32_t order, std::function<void()> finish);

}  // namespace lockstep::parallel
