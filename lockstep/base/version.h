// The version of this library: "0.1.0".
#pragma once

namespace lockstep {

const char* version();

}  // namespace lockstep
