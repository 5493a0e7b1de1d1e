// How the parts of a data set lie at a path. One rank looks, so that all ranks open the same.
#pragma once

#include <string>

#include "lockstep/data/on_one_rank.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/packed/manifest.h"

namespace lockstep::datasets {

// Percent that are held out of images and of pairs where there is no test part and nobody says how much.
constexpr double kUsualValidation = 10;

struct Layout {
  Kind kind = Kind::kUnknown;
  bool one_part = true;   // at the path itself; else in train/ or train.rec
  std::string test = {};  // the part to test on, relative to the path: "val", "val.rec"; empty if there is none
  Packed packed = Packed::kImages;  // what packed data holds
  bool operator==(const Layout&) const = default;
};

// Looks at names alone, val before validation, valid and test, and at packed data's manifest. A test/ of images without
// class folders is none; another part is one whatever is in it. Throws IoError where the machine failed, DataError for
// a part or a manifest that can't be read.
Layout find_layout(const std::string& path);

// The same of what one rank sees. A collective where `on_one_rank` is.
Layout find_layout(const std::string& path, const data::OnOneRank& on_one_rank);

// pair_folders() of what one rank sees.
PairFolders pair_folders(const std::string& path, const data::OnOneRank& on_one_rank);

}  // namespace lockstep::datasets
