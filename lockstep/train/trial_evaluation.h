// An evaluation of one sample before a run begins: mistakes in a recipe's metrics show before an epoch is trained.
#pragma once

#include "lockstep/train/parts.h"

namespace lockstep::train {

// Evaluates the first test sample on this rank alone. The random generators stay as they were. Throws ConfigError for
// a recipe without test data and for a best_by() that names no metric. What the recipe throws is thrown on with the
// recipe's name, as a BugError where it is no Error.
void try_evaluation(const Parts& parts);

}  // namespace lockstep::train
