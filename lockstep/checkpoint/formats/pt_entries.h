// The entries of a .pt file, in their order.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/storage_plan.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

struct PtEntry {
  std::string name;
  std::optional<size_t> storage = {};  // the content: of the plan's storages this one's bytes, or else the text
  std::string text = {};
};

// Returns the entries of the tree's file. The storages come first: their places depend on their sizes alone, and stay
// the same while numbers in the pickle change. PyTorch takes the folder's name from whatever entry is the first.
std::vector<PtEntry> pt_entries(const Value& value, const StoragePlan& plan);

}  // namespace lockstep::checkpoint
