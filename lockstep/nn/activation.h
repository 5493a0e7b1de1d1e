// The activations that a layer computes in its own pass.
#pragma once

namespace lockstep::nn {

enum class Activation { kNone, kRelu, kRelu6 };  // x; max(x, 0); min(max(x, 0), 6). NaN stays NaN

}  // namespace lockstep::nn
