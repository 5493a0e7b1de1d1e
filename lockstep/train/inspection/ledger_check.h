// Whether a run has used its samples as it should: each one of every epoch once, whatever has happened to its ranks.
#pragma once

#include <string>

namespace lockstep::train {

// Reads the files of a ledger's folder (train/ledger.h). Of each step the last attempt counts, and the run is where its
// last attempt is: at the last step of that, which may be under way, or before its first. Looks whether the lanes of
// the steps up to there have all places of their epoch's order, each once. Of an attempt whose ranks have files here on
// some nodes only, no place is to be used twice; a node has the files of all of its ranks. A step that several attempts
// have computed had the same samples in each. Returns what the ledger holds, for people. Throws DataError that names
// the step, IoError.
std::string check_ledger(const std::string& folder);

}  // namespace lockstep::train
