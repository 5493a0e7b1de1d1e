// The files of a run's training data, kept in its folder so that a changed one can be named.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/listed.h"

namespace lockstep::train {

// The text of data.list: a line for each file, its size and its name.
std::string to_text(const std::vector<Listed>& files);
// Reads it again. Lines that are none are left out.
std::vector<Listed> files_in(const std::string& text);

// Says in which file two lists, each ascending by name, differ first: "cats/new.jpg was added", "cats/1.jpg is gone",
// "cats/1.jpg has 812 bytes, and had 800"; empty if they are equal.
std::string difference(const std::vector<Listed>& then, const std::vector<Listed>& now);

}  // namespace lockstep::train
