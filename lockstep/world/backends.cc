#include "lockstep/world/backends.h"

#include <algorithm>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/run_main.h"
#include "lockstep/comm/hierarchy/hierarchical_communicator.h"
#include "lockstep/comm/network/gloo_mesh.h"
#include "lockstep/comm/plugins/mpi_plugin.h"
#include "lockstep/comm/plugins/nccl_plugin.h"
#include "lockstep/comm/shm/shm_communicator.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep {
namespace {

using comm::Communicator;
using comm::Network;

constexpr Backend::Entry kMpi{comm::kMpiPlugin, "lockstep_make_mpi_mesh"};
constexpr Backend::Entry kNccl{comm::kCudaPlugin, "lockstep_make_nccl_communicator"};

std::unique_ptr<Communicator> make_single(const Backend&, const BackendParts&, const WorldOptions&) {
  return std::make_unique<comm::SingleCommunicator>();
}

std::unique_ptr<Communicator> make_shm(const Backend&, const BackendParts& parts, const WorldOptions& options) {
  comm::ShmCommunicator::Options node{};
  node.rank = parts.place.rank;
  node.size = parts.place.size;
  node.timeout = options.timeout;
  node.timeout_name = options.timeout_name;
  return std::make_unique<comm::ShmCommunicator>(node, parts.memory, parts.pool, parts.board);
}

// Opens MPI's plug-in.
std::unique_ptr<comm::Mesh> make_mpi_mesh(const comm::MeshOptions& options) {
  const auto make = comm::plugin_function<decltype(lockstep_make_mpi_mesh)>(kMpi.plugin, kMpi.function);
  return std::unique_ptr<comm::Mesh>(make({.rank = options.rank, .size = options.size}));
}

// Joins the ranks over the mesh of a network library.
using MeshMaker = std::unique_ptr<comm::Mesh> (*)(const comm::MeshOptions& options);
Network connect(const Backend& self, MeshMaker make_mesh, const BackendParts& parts, const WorldOptions& options) {
  const Session& session = *parts.session;
  const auto make = [&] {
    return make_mesh(
        {.rank = session.rank,
         .size = session.size(),
         .interfaces = self.chooses_interfaces ? interfaces_for(session, parts.place, options.interfaces) : "",
         .towards = rendezvous_host(parts.place),
         .timeout = options.timeout,
         .store = session.store.connect("mesh/", Deadline(options.timeout))});
  };
  return connect_network(session, make, options, parts.board);
}

template <MeshMaker make_mesh>
std::unique_ptr<Communicator> make_over(const Backend& self, const BackendParts& parts, const WorldOptions& options) {
  return world_group(connect(self, make_mesh, parts, options), *parts.session);
}

std::unique_ptr<Communicator> make_hierarchical(const Backend& self, const BackendParts& parts,
                                                const WorldOptions& options) {
  const Network network = connect(self, comm::make_gloo_mesh, parts, options);
  comm::ShmCommunicator::Options node{};
  node.timeout = options.timeout;
  node.timeout_name = options.timeout_name;
  node.world_ranks = parts.session->node_ranks();
  return std::make_unique<comm::HierarchicalCommunicator>(
      world_group(network, *parts.session), network, parts.session->table,
      comm::HierarchicalCommunicator::Node{node, parts.memory, parts.pool, parts.board});
}

[[noreturn]] void end_process_with(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const Error& error) {
    end_process(error);
  } catch (const std::exception& error) {
    end_process(CommError(error.what()));
  }
}

// NCCL for tensors on GPUs, beside Gloo for the rest.
std::unique_ptr<Communicator> make_nccl(const Backend& self, const BackendParts& parts, const WorldOptions& options) {
  const auto make = comm::plugin_function<decltype(lockstep_make_nccl_communicator)>(kNccl.plugin, kNccl.function);
  const auto log = Logger::from_environment(cat("rank ", parts.place.rank));
  comm::NcclOptions nccl{.host = world_group(connect(self, comm::make_gloo_mesh, parts, options), *parts.session),
                         .store = parts.session->store.connect("nccl/", Deadline(options.timeout)),
                         .rank = parts.place.rank,
                         .ranks = parts.session->table,
                         .gpu = options.gpu,
                         .interfaces = options.interfaces,
                         .timeout = options.timeout,
                         .same_bits = options.same_bits,
                         .timeout_name = options.timeout_name,
                         .board = parts.board,
                         .warn = [log](const std::string& text) { log.warning(text); },
                         .end_process = end_process_with};
  return std::unique_ptr<Communicator>(make(nccl));
}

// A new backend is one more line here, its include and its name in kBackendNames (options/backend_options.h).
constexpr Backend kBackends[] = {
    {"single", Backend::Reach::kOneRank, false, false, nullptr, make_single},
    {"shm", Backend::Reach::kOneNode, false, true, nullptr, make_shm},
    {"gloo", Backend::Reach::kNetwork, true, false, nullptr, make_over<comm::make_gloo_mesh>},
    {"mpi", Backend::Reach::kNetwork, false, false, &kMpi, make_over<make_mpi_mesh>},
    {"hierarchical", Backend::Reach::kNetwork, true, true, nullptr, make_hierarchical},
    {"nccl", Backend::Reach::kNetwork, true, false, &kNccl, make_nccl},
};

const Backend* find_backend(std::string_view name) {
  const auto* found = std::find_if(std::begin(kBackends), std::end(kBackends),
                                   [name](const Backend& each) { return each.name == name; });
  return found == std::end(kBackends) ? nullptr : found;
}

const Backend& known_backend(const std::string& name) {
  if (const Backend* found = find_backend(name)) return *found;
  std::vector<std::string> names = {"auto"};
  std::string list = "auto";
  for (const Backend& each : kBackends) {
    names.emplace_back(each.name);
    list += cat(", ", each.name);
  }
  const std::string guess = nearest(name, names);
  throw ConfigError("backend ", name, ": expected one of ", list,
                    guess.empty() ? "" : cat("; did you mean ", guess, "?"));
}

void check_reach(const Backend& backend, const rendezvous::Place& place) {
  const bool one_node = place.local_size == place.size;
  if (backend.reach == Backend::Reach::kOneRank && place.size > 1) {
    throw ConfigError("backend ", backend.name, ": serves a world of 1, not of ", place.size, " ranks; use auto");
  }
  if (backend.reach == Backend::Reach::kOneNode && !one_node) {
    throw ConfigError("backend ", backend.name, ": rank ", place.rank, " has ", place.local_size, " of ", place.size,
                      " ranks on its node, and shared memory ends with the node; use hierarchical or gloo");
  }
}

// Whether LOCKSTEP_DEBUG=INFO, or NCCL_DEBUG, asks for the transport to be logged.
bool wants_details() {
  for (const char* name : {"LOCKSTEP_DEBUG", "NCCL_DEBUG"}) {
    const auto level = env(name);
    if (level && (*level == "INFO" || *level == "TRACE")) return true;
  }
  return false;
}

}  // namespace

std::span<const Backend> backends() { return kBackends; }

const Backend& choose_backend(const std::string& wanted, const rendezvous::Place& place) {
  const bool automatic = wanted == "auto";
  const bool one_node = place.local_size == place.size;
  const Backend& backend = known_backend(automatic ? (one_node ? "shm" : "hierarchical") : wanted);
  if (place.local_size > kMaxLocalRanks) {
    throw ConfigError(place.local_size, " ranks on one node: at most ", kMaxLocalRanks);
  }
  check_reach(backend, place);
  return place.size == 1 ? known_backend("single") : backend;
}

const Backend& usable_backend(const InitOptions& options, const rendezvous::Place& place) {
  const Backend& backend = choose_backend(options.backend, place);
  if (backend.entry != nullptr) comm::plugin_symbol(backend.entry->plugin, backend.entry->function);
  if (backend.chooses_interfaces) named_interfaces(options.interfaces);
  return backend;
}

std::unique_ptr<Communicator> make_communicator(const BackendParts& parts, const WorldOptions& wanted) {
  WorldOptions options = wanted;
  options.timeout = bounded(wanted.timeout);
  const Backend& backend = known_backend(options.backend);
  auto communicator = backend.make(backend, parts, options);
  if (wants_details()) {
    Logger::from_environment(cat("rank ", parts.place.rank)).info("comm: ", communicator->describe());
  }
  return communicator;
}

}  // namespace lockstep
