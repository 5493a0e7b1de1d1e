// Images in a folder for each class: cats/1.jpg, dogs/2.jpg.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/on_one_rank.h"
#include "lockstep/datasets/image_source.h"

namespace lockstep::datasets {

struct ClassFoldersOptions {
  std::vector<std::string> classes = {};  // of the training part, for its other parts; empty: the folders' names
  data::OnOneRank on_one_rank = {};
  OnProblem on_problem = {};
};

// Opens a folder of class folders. A class's images may lie in folders of their own; files that are no images by their
// ending are left out and counted. Classes are the folders' names, ascending bytewise. Throws DataError that names a
// class folder without images, one that options.classes lacks, and images beside the class folders; and what list_files
// throws; with options.on_problem these are told, and what they spoil is left out.
std::shared_ptr<const ImageSource> class_folders(const std::string& path, const ClassFoldersOptions& options = {});

}  // namespace lockstep::datasets
