// The packages, NUMA nodes, caches and cores of a machine (hwloc), and their division among its ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct hwloc_topology;

namespace lockstep {

// What the CPUs that a rank is bound to have in common, as torchrun's --numa-binding names it.
enum class CpuBinding { kNode, kSocket, kExclusive, kCoreComplex };

// The topology of the CPUs that a process may use. Reading it takes milliseconds, so read it only when it is needed.
// Any thread may call const members.
class Topology {
 public:
  // The topology of this machine, restricted to the CPUs that this process may run on. Throws IoError if the system
  // doesn't tell.
  static Topology of_this_machine();
  // The topology that a description in hwloc's syntax stands for, for tests: "package:2 [numa] core:4 pu:2". Throws
  // ConfigError.
  static Topology synthetic(const std::string& words);

  // The CPUs of one of a node's ranks, by the system's numbers, ascending. Ranks are spread over packages, then NUMA
  // nodes, then caches, and each rank gets whole cores. Where there are more ranks than cores, some share a core.
  std::vector<int> cores_of(int local_rank, int local_size) const;
  // The NUMA node, by the system's number, that all CPUs of the rank belong to; nothing if they belong to several.
  std::optional<int> numa_node_of(int local_rank, int local_size) const;

  // The CPUs of each of a node's ranks, ascending: all of the NUMA node that its GPU is at, all of that node's package,
  // a share of the node's cores that no other rank has, or those at one of the node's last-level caches. `of_gpus` has
  // the NUMA node of each rank's GPU, by the system's number. Without GPUs it is empty, and a rank's node is the one
  // that the first of its cores_of() belongs to. Throws ConfigError for a node without CPUs of this process's, and for
  // more ranks than cores where each has its own.
  std::vector<std::vector<int>> bound_to(CpuBinding binding, const std::vector<int>& of_gpus, int local_size) const;

  int numa_nodes() const;
  std::string describe() const;  // "1 package, 1 NUMA node, 2 cores, 2 threads; L3 105 MiB"

  // Pins all threads of this process, present and future, to cores_of(local_rank, local_size). Valid only for
  // of_this_machine(). Throws IoError if the system refuses.
  void pin_this_process(int local_rank, int local_size) const;
  // Binds the pages of [data, data + bytes) to NUMA node `node`, and migrates those that exist already. The binding of
  // a shared mapping holds for all processes that map it. It is a preference: when the node is full, pages come from
  // another. Returns "", or the reason why the system refused. `data` is page-aligned.
  std::string bind_memory(void* data, size_t bytes, int node) const;

 private:
  struct Free {
    void operator()(hwloc_topology* topology) const;
  };
  using Handle = std::unique_ptr<hwloc_topology, Free>;

  explicit Topology(Handle handle) : handle_(std::move(handle)) {}

  Handle handle_;
};

// Does what --pin asks for: pins this process to its share of the cores and binds [pool, pool + bytes) near them.
// Returns a line that says what was done: "CPUs 0-3 of NUMA node 0". Throws IoError.
std::string pin_rank(int local_rank, int local_size, void* pool, size_t bytes);

}  // namespace lockstep
