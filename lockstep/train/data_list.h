// The files of a run's data, kept in its folder as data.list so that a changed one can be named.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/listed.h"
#include "lockstep/train/data_facts.h"

namespace lockstep::train {

// The text of data.list: a line for each file, its size and its name. Those of the training part come first, then each
// other part's after a line "part test". Empty where no part lies in files.
std::string to_text(const DataFiles& files);
// Reads it again. Lines that are none are left out.
DataFiles files_in(const std::string& text);
// Reads data.list in the folder of a run; all parts are unset if there is none.
DataFiles read_data_list(const std::string& run_folder);

// Says in which file two lists, each ascending by name, differ first: "cats/new.jpg was added", "cats/1.jpg is gone",
// "cats/1.jpg has 812 bytes, and had 800"; empty if they are equal.
std::string changed_file(const std::vector<Listed>& then, const std::vector<Listed>& now);

}  // namespace lockstep::train
