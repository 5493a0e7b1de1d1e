// The rank table: node, local rank and host of every rank of the world.
#pragma once

#include <string>
#include <vector>

namespace lockstep::comm {

struct RankPlace {
  int node = 0;  // nodes are numbered in the order of their first ranks
  int local_rank = 0;
  std::string host = {};
};

using RankTable = std::vector<RankPlace>;  // by rank

// The ranks of a node, by local rank; -1 stands for a local rank that the table lacks.
inline std::vector<int> ranks_of_node(const RankTable& table, int node) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < table.size(); ++rank) {
    if (table[rank].node != node) continue;
    const auto local = static_cast<size_t>(table[rank].local_rank);
    if (ranks.size() <= local) ranks.resize(local + 1, -1);
    ranks[local] = static_cast<int>(rank);
  }
  return ranks;
}

inline int node_count(const RankTable& table) {
  int nodes = 0;
  for (const RankPlace& place : table) nodes = place.node >= nodes ? place.node + 1 : nodes;
  return nodes;
}

}  // namespace lockstep::comm
