// Packages, NUMA nodes, caches and cores of a machine (hwloc), and which of them a rank gets.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct hwloc_topology;

namespace lockstep {

// What the CPUs that it may use look like. Reading it takes milliseconds, so ask only when it is needed. Const members
// may be called by any thread.
class Topology {
 public:
  // This machine, cut to the CPUs that this process may run on. Throws IoError if the system doesn't tell.
  static Topology of_this_machine();
  // One that hwloc's words describe, for tests: "package:2 [numa] core:4 pu:2". Throws ConfigError.
  static Topology synthetic(const std::string& words);

  // The CPUs (numbers as the system's) of one of a node's ranks, ascending. Ranks are spread over packages, NUMA nodes
  // and caches in turn, and each gets whole cores; where there are more ranks than cores, some share one.
  std::vector<int> cores_of(int local_rank, int local_size) const;
  // The NUMA node (the system's number) that all CPUs of the rank belong to; nothing where they are of several.
  std::optional<int> numa_node_of(int local_rank, int local_size) const;

  int numa_nodes() const;
  std::string describe() const;  // "1 package, 1 NUMA node, 2 cores, 2 threads; L3 105 MiB"

  // Keeps all threads of this process, and those to come, on cores_of(local_rank, local_size). Throws IoError if the
  // system refuses. Of this machine only.
  void pin_this_process(int local_rank, int local_size) const;
  // Asks for the pages of [data, data + bytes) on `node`: those to come, and those that are there. Of a shared mapping
  // it holds for all processes that map it. A wish, not a must: a full node's pages come from another. Returns "", or
  // why it was not to be. `data` is page-aligned.
  std::string bind_memory(void* data, size_t bytes, int node) const;

 private:
  struct Free {
    void operator()(hwloc_topology* topology) const;
  };
  using Handle = std::unique_ptr<hwloc_topology, Free>;

  explicit Topology(Handle handle) : handle_(std::move(handle)) {}

  Handle handle_;
};

// What --pin means: this process on its share of the cores, and [pool, pool + bytes) near them. Returns a line that
// says what was done: "CPUs 0-3 of NUMA node 0". Throws IoError.
std::string pin_rank(int local_rank, int local_size, void* pool, size_t bytes);

}  // namespace lockstep
