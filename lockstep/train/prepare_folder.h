// The folder of a run that is set up, as it is when the run begins or goes on.
#pragma once

#include <optional>

#include "lockstep/train/continuation.h"
#include "lockstep/train/parts.h"

namespace lockstep::train {

// Finds out whether the run is done, and on ranks that save writes its configuration and lists and ends its history
// where it goes on, `from` a checkpoint or from its beginning. A collective. Throws IoError.
void prepare_folder(Parts& parts, const std::optional<ResumedCheckpoint>& from);

}  // namespace lockstep::train
