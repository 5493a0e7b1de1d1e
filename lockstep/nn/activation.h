// What follows a layer and is computed in the same pass.
#pragma once

namespace lockstep::nn {

enum class Activation { kNone, kRelu, kRelu6 };  // x; max(x, 0); min(max(x, 0), 6). NaN stays NaN

}  // namespace lockstep::nn
