// The parts of a data set of images as they are stored, in whichever of the forms that people have.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/on_one_rank.h"
#include "lockstep/datasets/image_source.h"
#include "lockstep/datasets/layout.h"

namespace lockstep::datasets {

struct StoredPart {
  std::string name;  // "train", "val" …; "" of data without parts
  std::shared_ptr<const ImageSource> images;
};

struct StoredData {
  Kind form = Kind::kUnknown;
  Packed kind = Packed::kImages;
  std::vector<StoredPart> parts;  // the training part, and mostly one to test on

  const ImageSource& train() const { return *parts.front().images; }
  // Null where there is none.
  std::shared_ptr<const ImageSource> test() const { return parts.size() < 2 ? nullptr : parts[1].images; }
};

struct StoredOptions {
  data::OnOneRank on_one_rank = {};
  OnProblem on_problem = {};
};

// Opens what open_images and open_pairs open: images with classes, or with masks. A collective where
// options.on_one_rank is. Throws DataError that names what is missing, damaged or does not belong together; with
// options.on_problem it throws where nothing can be opened, and tells what spoils single files.
StoredData open_stored(const std::string& path, const StoredOptions& options = {});

// The same where find_layout(path, options.on_one_rank) has been asked.
StoredData open_stored(const std::string& path, const Layout& layout, const StoredOptions& options);

}  // namespace lockstep::datasets
