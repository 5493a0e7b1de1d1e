// Slurm's short forms of lists. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

// "2(x3),1": 2, 2, 2, 1 tasks on the nodes. Nothing if it is no such list.
std::optional<std::vector<int>> expand_tasks(const std::string& list);

// "node[01-04,07],other": node01, node02, …. Names may have several brackets, of which all combinations are meant, the
// last one changing fastest. Nothing if it is no such list.
std::optional<std::vector<std::string>> expand_nodes(const std::string& list);

}  // namespace lockstep::rendezvous
