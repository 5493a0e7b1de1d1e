// Images and their masks, told by the names of files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/on_one_rank.h"
#include "lockstep/datasets/files/listing.h"
#include "lockstep/datasets/image_source.h"

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
// a/1_mask.gif. Other files are left out. Throws DataError that names two images, or two masks, of one name; with
// `on_problem` it is told, and the second one left out.
Pairs match_pairs(const std::string& path, const Listing& images, const Listing& masks,
                  const OnProblem& on_problem = {});

struct PairOptions {
  data::OnOneRank on_one_rank = {};
  OnProblem on_problem = {};
};

// Finds the pairs in a folder with imgs/, images/ or train/, and masks/, train_masks/ or labels/. Throws DataError
// where there are no such folders or no pairs in them, and what list_files throws.
Pairs find_pairs(const std::string& path, const PairOptions& options = {});

// The pairs as a source. Throws DataError for images and masks without partner, which `on_problem` gets one by one in
// its place.
std::shared_ptr<const ImageSource> pair_files(Pairs pairs, const OnProblem& on_problem = {});

}  // namespace lockstep::datasets
