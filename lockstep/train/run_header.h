// The header (header.h) of a run that is set up.
#pragma once

#include <string>

#include "lockstep/train/parts.h"

namespace lockstep::train {

std::string header_of(const Parts& parts);

}  // namespace lockstep::train
