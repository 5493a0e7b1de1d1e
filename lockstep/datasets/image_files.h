// Which files are images.
#pragma once

#include <string>

#include "lockstep/data/on_one_rank.h"
#include "lockstep/datasets/files/listing.h"

namespace lockstep::datasets {

constexpr const char* kImageEndings = "jpg, jpeg, png, gif or npy";

// Whether a file is an image by its ending.
bool is_image(const std::string& name);

// Lists the files of a folder on one rank, for all.
Listing list_files_once(const std::string& path, const data::OnOneRank& on_one_rank, const OnProblem& on_problem = {});

// "3 JPEGs", "2 PNGs", or "5 images (3 JPEG, 2 PNG)".
std::string count_of_images(const Listing& images);

}  // namespace lockstep::datasets
