#include "lockstep/base/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

std::vector<int> members(hwloc_const_bitmap_t set) {
  std::vector<int> out;
  for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i)) out.push_back(i);
  return out;
}

// hwloc gives each subtree ranks by its share of the CPUs, and goes no deeper than whole cores.
Bitmap share_of(hwloc_topology_t topology, int local_rank, int local_size) {
  std::vector<hwloc_bitmap_t> sets(static_cast<size_t>(local_size), nullptr);
  hwloc_obj_t root = hwloc_get_root_obj(topology);
  const int cores = hwloc_get_type_depth(topology, HWLOC_OBJ_CORE);
  const int until = cores >= 0 ? cores : std::numeric_limits<int>::max();  // some machines know threads alone
  if (hwloc_distrib(topology, &root, 1, sets.data(), static_cast<unsigned>(local_size), until, 0) != 0) {
    throw IoError("the cores can't be shared among ", local_size, " ranks: ", errno_text(errno));
  }
  std::vector<Bitmap> owned(sets.begin(), sets.end());
  return std::move(owned[static_cast<size_t>(local_rank)]);
}

// The CPUs of objects of one type within `cpus`, a set for each object.
std::vector<std::vector<int>> within(hwloc_topology_t topology, hwloc_const_bitmap_t cpus, hwloc_obj_type_t type) {
  std::vector<std::vector<int>> out;
  for (hwloc_obj_t each = nullptr; (each = hwloc_get_next_obj_by_type(topology, type, each)) != nullptr;) {
    const Bitmap own(hwloc_bitmap_alloc());
    hwloc_bitmap_and(own.get(), each->cpuset, cpus);
    if (hwloc_bitmap_iszero(own.get()) == 0) out.push_back(members(own.get()));
  }
  return out;
}

// The same of the first type that the machine knows.
std::vector<std::vector<int>> within(hwloc_topology_t topology, hwloc_const_bitmap_t cpus,
                                     std::initializer_list<hwloc_obj_type_t> types) {
  for (const hwloc_obj_type_t type : types) {
    if (auto found = within(topology, cpus, type); !found.empty()) return found;
  }
  return {members(cpus)};
}

// The CPUs of rank `index` of the `ranks` of a NUMA node.
std::vector<int> bound_on(hwloc_topology_t topology, hwloc_const_bitmap_t node, CpuBinding binding, size_t index,
                          size_t ranks) {
  if (binding == CpuBinding::kNode) return members(node);
  if (binding == CpuBinding::kSocket) {
    for (hwloc_obj_t each = nullptr;
         (each = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, each)) != nullptr;) {
      if (hwloc_bitmap_intersects(each->cpuset, node) != 0) return members(each->cpuset);
    }
    return members(node);
  }
  if (binding == CpuBinding::kCoreComplex) {
    auto complexes = within(topology, node, {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE});
    std::stable_sort(complexes.begin(), complexes.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    return complexes[index % complexes.size()];
  }
  const auto cores = within(topology, node, {HWLOC_OBJ_CORE, HWLOC_OBJ_PU});
  if (cores.size() < ranks) {
    throw ConfigError("--numa-binding exclusive: ", ranks, " processes and ", cores.size(),
                      " cores are at one NUMA node; use --numa-binding node");
  }
  const size_t each = cores.size() / ranks, more = cores.size() % ranks;  // the first ranks have one more
  const size_t first = index * each + std::min(index, more), last = first + each + (index < more ? 1 : 0);
  std::vector<int> own;
  for (size_t core = first; core < last; ++core) own.insert(own.end(), cores[core].begin(), cores[core].end());
  std::sort(own.begin(), own.end());
  return own;
}

std::string counted(int count, const char* what) { return cat(count, ' ', what, count == 1 ? "" : "s"); }

// "; L3 2 x 32 MiB"; nothing where the machine doesn't tell.
std::string last_cache(hwloc_topology_t topology) {
  const int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L3CACHE);
  if (count <= 0) return "";
  const auto bytes = hwloc_get_obj_by_type(topology, HWLOC_OBJ_L3CACHE, 0)->attr->cache.size;
  return cat("; L3 ", count > 1 ? cat(count, " x ") : "", human_bytes(bytes));
}

}  // namespace

void Topology::Free::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

Topology Topology::of_this_machine() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw IoError("hwloc can't be used: ", errno_text(errno));
  Handle handle(raw);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);  // they take longest to find
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING);
  if (hwloc_topology_load(raw) != 0) throw IoError("the machine's topology can't be read: ", errno_text(errno));
  return Topology(std::move(handle));
}

Topology Topology::synthetic(const std::string& words) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw IoError("hwloc can't be used: ", errno_text(errno));
  Handle handle(raw);
  if (hwloc_topology_set_synthetic(raw, words.c_str()) != 0 || hwloc_topology_load(raw) != 0) {
    throw ConfigError("topology ", words, ": hwloc doesn't understand it");
  }
  return Topology(std::move(handle));
}

std::vector<int> Topology::cores_of(int local_rank, int local_size) const {
  return members(share_of(handle_.get(), local_rank, local_size).get());
}

std::optional<int> Topology::numa_node_of(int local_rank, int local_size) const {
  const Bitmap cores = share_of(handle_.get(), local_rank, local_size);
  const Bitmap nodes(hwloc_bitmap_alloc());
  hwloc_cpuset_to_nodeset(handle_.get(), cores.get(), nodes.get());
  if (hwloc_bitmap_weight(nodes.get()) != 1) return std::nullopt;
  return hwloc_bitmap_first(nodes.get());
}

std::vector<std::vector<int>> Topology::bound_to(CpuBinding binding, const std::vector<int>& of_gpus,
                                                 int local_size) const {
  std::vector<hwloc_obj_t> nodes;
  for (int rank = 0; rank < local_size; ++rank) {
    hwloc_obj_t node = nullptr;
    if (of_gpus.empty()) {
      const auto first = static_cast<unsigned>(cores_of(rank, local_size).front());
      while ((node = hwloc_get_next_obj_by_type(handle_.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr &&
             hwloc_bitmap_isset(node->cpuset, first) == 0) {
      }
    } else {
      const int number = of_gpus.at(static_cast<size_t>(rank));
      node = hwloc_get_numanode_obj_by_os_index(handle_.get(), static_cast<unsigned>(number));
      if (node == nullptr || hwloc_bitmap_iszero(node->cpuset) != 0) {
        throw ConfigError("--numa-binding: the GPU of local rank ", rank, " is at NUMA node ", number,
                          ", of which this process may use no CPU; leave it out, or allow more CPUs (taskset, cgroup)");
      }
    }
    nodes.push_back(node);
  }
  std::vector<std::vector<int>> out;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    const auto same = [&](auto from, auto to) { return static_cast<size_t>(std::count(from, to, nodes[rank])); };
    const auto own = nodes.begin() + static_cast<ptrdiff_t>(rank);
    hwloc_const_bitmap_t cpus =
        nodes[rank] != nullptr ? nodes[rank]->cpuset : hwloc_topology_get_topology_cpuset(handle_.get());
    out.push_back(bound_on(handle_.get(), cpus, binding, same(nodes.begin(), own), same(nodes.begin(), nodes.end())));
  }
  return out;
}

int Topology::numa_nodes() const { return hwloc_get_nbobjs_by_type(handle_.get(), HWLOC_OBJ_NUMANODE); }

std::string Topology::describe() const {
  const auto count = [this](hwloc_obj_type_t type) { return hwloc_get_nbobjs_by_type(handle_.get(), type); };
  return cat(counted(count(HWLOC_OBJ_PACKAGE), "package"), ", ", counted(numa_nodes(), "NUMA node"), ", ",
             counted(count(HWLOC_OBJ_CORE), "core"), ", ", counted(count(HWLOC_OBJ_PU), "thread"),
             last_cache(handle_.get()));
}

void Topology::pin_this_process(int local_rank, int local_size) const {
  const Bitmap cores = share_of(handle_.get(), local_rank, local_size);
  if (hwloc_set_cpubind(handle_.get(), cores.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    throw IoError("can't pin to cores ", ranges(members(cores.get())), ": ", errno_text(errno));
  }
}

std::string Topology::bind_memory(void* data, size_t bytes, int node) const {
  const Bitmap nodes(hwloc_bitmap_alloc());
  hwloc_bitmap_only(nodes.get(), static_cast<unsigned>(node));
  constexpr int kWish = HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_MIGRATE;  // without _STRICT
  if (hwloc_set_area_membind(handle_.get(), data, bytes, nodes.get(), HWLOC_MEMBIND_BIND, kWish) == 0) return "";
  return cat("the system does not place memory: ", errno_text(errno));
}

std::string pin_rank(int local_rank, int local_size, void* pool, size_t bytes) {
  const auto topology = Topology::of_this_machine();
  const auto node = topology.numa_node_of(local_rank, local_size);
  topology.pin_this_process(local_rank, local_size);
  const auto own = topology.cores_of(local_rank, local_size);
  const std::string cores = cat(own.size() == 1 ? "CPU " : "CPUs ", ranges(own));
  if (!node) return cores + ", of several NUMA nodes";
  // With one node there is nothing to choose, and some sandboxes refuse the question.
  const std::string refused = topology.numa_nodes() > 1 ? topology.bind_memory(pool, bytes, *node) : "";
  return cat(cores, " of NUMA node ", *node, refused.empty() ? "" : ", but ", refused);
}

}  // namespace lockstep
