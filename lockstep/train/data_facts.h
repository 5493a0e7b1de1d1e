// What tells a run's data from others: fingerprints and classes, as checkpoints record them, and the files of
// data.list, by which a change is named.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/listed.h"
#include "lockstep/data/relabelled.h"

namespace lockstep::train {

// The parts of a data set, before anything is held out of them.
enum class Part { kTrain, kValidation, kTest };
constexpr std::array kParts = {Part::kTrain, Part::kValidation, Part::kTest};

template <typename T>
using ByPart = std::array<T, kParts.size()>;
template <typename T>
T& of(ByPart<T>& parts, Part part) {
  return parts[static_cast<size_t>(part)];
}
template <typename T>
const T& of(const ByPart<T>& parts, Part part) {
  return parts[static_cast<size_t>(part)];
}

// "train", "validation", "test".
const char* text_of(Part part);
// "", "validation part: ", "test part: ": begins what is said of a part.
const char* prefix_of(Part part);

struct DataFacts {
  // "none" for a part that is not there; empty in records of versions that did not have it.
  ByPart<std::string> fingerprints = {};
  data::Classes classes = {};  // count 0: none, or not recorded
  bool operator==(const DataFacts&) const = default;
};
DataFacts facts_of(const data::Splits& opened);

// The files of each part, ascending by name; none where its data lie in no files. Unset: an older version's data.list
// does not have the part.
using DataFiles = ByPart<std::optional<std::vector<Listed>>>;
DataFiles files_of(const data::Splits& opened);

// Whether both records have the part, and not the same.
bool differs(const DataFacts& then, const DataFacts& now, Part part);

// Says how the part differs: in which file, "test part: cats/new.jpg was added", or else by its fingerprints.
std::string difference(const DataFacts& then, const DataFacts& now, Part part, const DataFiles& files_then = {},
                       const DataFiles& files_now = {});

}  // namespace lockstep::train
