// Images and their masks, told by the names of files.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/datasets/files/listing.h"

namespace lockstep::datasets {

// The two files of a sample.
struct Pair {
  std::string image, mask;  // relative to the data set's folder
  bool operator==(const Pair&) const = default;
};

struct Pairs {
  std::string path;                                      // the data set's folder
  std::vector<Pair> pairs;                               // ascending by image
  std::vector<std::string> without_mask, without_image;  // files that have no partner
  Listing listing;                                       // of all images and masks
};

// Pairs images with masks of the same name but for the ending, to which a mask may add "_mask": a/1.jpg and a/1.png, or
// a/1_mask.gif. Other files are left out. Throws DataError that names two images, or two masks, of one name.
Pairs match_pairs(const std::string& path, const Listing& images, const Listing& masks);

// Finds the pairs in a folder with imgs/, images/ or train/, and masks/, train_masks/ or labels/. Throws DataError
// where there are no such folders or no pairs in them, and what list_files throws.
Pairs find_pairs(const std::string& path, const data::OnOneRank& on_one_rank = {});

}  // namespace lockstep::datasets
