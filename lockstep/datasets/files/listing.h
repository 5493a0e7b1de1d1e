// The files of a data set's folder: their names, sizes and a fingerprint of both.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/listed.h"

namespace lockstep::datasets {

// Names are relative to the folder, with / between folders, and ascend bytewise, whatever the file system's order.
using Listing = std::vector<Listed>;

// Takes the line of a problem that spoils some files and leaves the others as they are, so that all problems can be
// listed. Null: the problem is thrown as a DataError.
using OnProblem = std::function<void(const std::string& line)>;

// Tells a problem, or throws it.
inline void tell(const OnProblem& on_problem, const std::string& line) {
  if (!on_problem) throw DataError(line);
  on_problem(line);
}

// Lists all files below a folder. Links are followed; names that begin with a dot are left out. Throws DataError that
// names what can't be right: a folder that is missing, unreadable or leads back to one above it, a link to nothing,
// pipes and devices, more than `depth` folders in each other; IoError where the machine failed. With `on_problem` such
// things in the folder are told and left out.
Listing list_files(const std::string& folder, int depth = 8, const OnProblem& on_problem = {});

// The names of the folders in a folder, without those that begin with a dot, ascending bytewise. Throws as list_files.
std::vector<std::string> list_folders(const std::string& folder, const OnProblem& on_problem = {});

// What tells the files from others: "files 250 xxh3 9f31c2…". Sizes and names alone, so that no file is read.
std::string fingerprint_of(const Listing& listing);

// The listing as a text for other processes, and back. Any name is possible. Throws DataError for other texts.
std::string text_of(const Listing& listing);
Listing listing_of(std::string_view text);

// Whether the name ends in a dot and one of these endings, in capital or small letters: {"jpg", "jpeg"}.
bool has_ending(std::string_view name, const std::vector<std::string_view>& endings);

}  // namespace lockstep::datasets
