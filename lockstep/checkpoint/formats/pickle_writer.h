// Writes pickles of protocol 2 in torch.save's vocabulary, which PyTorch loads with weights_only=True.
#pragma once

#include <string>

#include "lockstep/checkpoint/formats/storage_plan.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// Pickles a tree of values; its tensors refer to the plan's storages by number. Throws BugError for a string of 4 GiB
// or more.
std::string write_pickle(const Value& value, const StoragePlan& plan);

}  // namespace lockstep::checkpoint
