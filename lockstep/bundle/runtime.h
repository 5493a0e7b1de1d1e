// The C++ runtime, of which a bundle has one for machines that have none, or an older one.
#pragma once

#include <string>

namespace lockstep::bundle {

// The newest N of the versions GLIBCXX_3.4.N that the library `file` has; -1 if it can't be read or has none.
int newest_glibcxx(const std::string& file);

// The folder in the bundle `root` that LD_LIBRARY_PATH has to begin with, or "" if the libstdc++ and libgcc_s that this
// process's loader finds will do: the newer libstdc++ wins, for libtorch, a driver or an MPI may need it.
std::string runtime_folder(const std::string& root);

}  // namespace lockstep::bundle
