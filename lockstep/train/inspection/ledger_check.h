// Whether a run has used its samples as it should: each one of every epoch once, whatever has happened to its ranks.
#pragma once

#include <string>

namespace lockstep::train {

// Reads the files of a ledger's folder (train/ledger.h). Of each step the last attempt counts. Looks whether the lanes
// of the steps of each epoch have all places of its order, each once; of the epoch that the run is in, those up to its
// last step, which may be under way. Where only some of an attempt's ranks have files
// here, no place is to be used twice. A step that several attempts have computed had the same samples in each. Returns
// what the ledger holds, for people. Throws DataError that names the step, IoError.
std::string check_ledger(const std::string& folder);

}  // namespace lockstep::train
