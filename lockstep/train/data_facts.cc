#include "lockstep/train/data_facts.h"

#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/train/data_list.h"

namespace lockstep::train {
namespace {

const std::shared_ptr<const data::Dataset>& part_of(const data::Splits& splits, Part part) {
  return part == Part::kTrain ? splits.train : part == Part::kTest ? splits.test : splits.validation;
}

}  // namespace

const char* text_of(Part part) { return part == Part::kTrain ? "train" : part == Part::kTest ? "test" : "validation"; }

const char* prefix_of(Part part) {
  return part == Part::kTrain ? "" : part == Part::kTest ? "test part: " : "validation part: ";
}

DataFacts facts_of(const data::Splits& opened) {
  DataFacts facts{.fingerprints = {}, .classes = data::classes_of(*opened.train)};
  for (const Part part : kParts) {
    const auto& data = part_of(opened, part);
    of(facts.fingerprints, part) = data == nullptr ? "none" : data->fingerprint();
  }
  return facts;
}

DataFiles files_of(const data::Splits& opened) {
  DataFiles files;
  for (const Part part : kParts) {
    const auto& data = part_of(opened, part);
    of(files, part) = data == nullptr ? std::vector<Listed>() : data->listing();
  }
  return files;
}

bool differs(const DataFacts& then, const DataFacts& now, Part part) {
  const std::string &before = of(then.fingerprints, part), &after = of(now.fingerprints, part);
  return !before.empty() && !after.empty() && before != after;
}

std::string difference(const DataFacts& then, const DataFacts& now, Part part, const DataFiles& files_then,
                       const DataFiles& files_now) {
  const auto &before = of(files_then, part), &after = of(files_now, part);
  const std::string file = before && after ? changed_file(*before, *after) : "";
  if (!file.empty()) return prefix_of(part) + file;
  return cat(prefix_of(part), of(then.fingerprints, part), ", and these are ", of(now.fingerprints, part));
}

}  // namespace lockstep::train
