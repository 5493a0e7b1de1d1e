// The images that a network is to look at.
#pragma once

#include <string>
#include <vector>

#include "lockstep/datasets/files/listing.h"

namespace lockstep::predict {

// `in` itself if it is a file, else all images below the folder, in bytewise order of their names, but for those below
// the folder `left_out`, which may lie in it. Links to nothing and the like are told to `on_problem`, if it is given.
// Throws DataError for a folder without images, and what list_files() throws.
std::vector<std::string> input_files(const std::string& in, const std::string& left_out = "",
                                     const datasets::OnProblem& on_problem = {});

// A name for what is made of an image: the file's without its ending, "cells/1.png" -> "1". Of a folder's images also
// the folders between, with "_" for "/", so that no two are equal: below "cells", "cells/a/1.png" -> "a_1". Throws
// DataError that names both files where two names are equal all the same.
std::vector<std::string> output_names(const std::string& in, const std::vector<std::string>& files);

}  // namespace lockstep::predict
