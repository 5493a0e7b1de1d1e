// What the dynamic loader finds for a program's libraries, which another folder of LD_LIBRARY_PATH (conda's, a
// module's) may have in older versions.
#pragma once

#include <string>
#include <vector>

namespace lockstep::doctor {

// The command that makes the loader list the program's libraries, on standard output and error, without starting it.
std::vector<std::string> loader_command(const std::string& program);

// Describes, in one line each, the libraries that are missing or too old in that list: which file, why, what to do.
// `search_path` is the LD_LIBRARY_PATH that the loader had. A pure function.
std::vector<std::string> loader_misfits(const std::string& list, const std::string& search_path);

}  // namespace lockstep::doctor
