// Tests whose ranks, all on this machine, behave as if they were on several nodes.
#pragma once

#include <stdlib.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/world/world.h"
#include "support/ranks.h"

namespace lockstep::testing_support {

// The argument of a rank program that calls init_on_nodes(): the backend, and the number of ranks of each node.
inline std::string nodes(const std::string& backend, const std::vector<int>& ranks) {
  std::string text = cat(backend, ' ', free_port());
  for (const int n : ranks) text += cat(' ', n);
  return text;
}

inline int rank_count(const std::vector<int>& nodes) {
  int count = 0;
  for (const int n : nodes) count += n;
  return count;
}

// init() with the environment that torchrun would set on such nodes.
inline std::shared_ptr<World> init_on_nodes(const RankContext& context,
                                            std::chrono::milliseconds timeout = std::chrono::seconds(60),
                                            std::chrono::milliseconds heartbeat = InitOptions().heartbeat) {
  std::istringstream in(context.argument);
  std::string backend, port;
  in >> backend >> port;
  int node = 0, first = 0, size = 0;
  for (; in >> size && context.rank >= first + size; ++node) first += size;
  const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
  unsetenv("LOCKSTEP_NODE_MEMORY");
  set("RANK", std::to_string(context.rank));
  set("WORLD_SIZE", std::to_string(context.size));
  set("LOCAL_RANK", std::to_string(context.rank - first));
  set("LOCAL_WORLD_SIZE", std::to_string(size));
  set("GROUP_RANK", std::to_string(node));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", port);
  return init({.backend = backend, .timeout = timeout, .heartbeat = heartbeat});
}

}  // namespace lockstep::testing_support
