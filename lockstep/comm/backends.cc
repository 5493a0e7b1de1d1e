#include "lockstep/comm/backends.h"

#include <cstdlib>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/hierarchical_communicator.h"
#include "lockstep/comm/plugins/nccl_communicator.h"
#include "lockstep/comm/ring_communicator.h"
#include "lockstep/comm/shm/shm_communicator.h"
#include "lockstep/comm/single_communicator.h"

namespace lockstep::comm {
namespace {

std::unique_ptr<Communicator> make_hierarchical(const RankParts& parts, const Network& network,
                                                const WorldOptions& options) {
  ShmCommunicator::Options node{};
  node.timeout = options.timeout;
  node.world_ranks = parts.session->node_ranks();
  return std::make_unique<HierarchicalCommunicator>(
      world_of(network, *parts.session), network, parts.session->table,
      HierarchicalCommunicator::Node{node, parts.memory, parts.pool, parts.board});
}

// NCCL for what is on GPUs, beside Gloo for the rest.
std::unique_ptr<Communicator> make_nccl(const RankParts& parts, const Network& network, const WorldOptions& options) {
  const auto make =
      plugin_function<decltype(lockstep_make_nccl_communicator)>(kCudaPlugin, "lockstep_make_nccl_communicator");
  const auto log = Logger::from_environment(cat("rank ", parts.place.rank));
  NcclOptions nccl{.host = world_of(network, *parts.session),
                   .store = parts.session->store.connect("nccl/", Deadline(options.timeout)),
                   .rank = parts.place.rank,
                   .ranks = parts.session->table,
                   .interfaces = options.interfaces,
                   .timeout = options.timeout,
                   .board = parts.board,
                   .warn = [log](const std::string& text) { log.warning(text); }};
  return std::unique_ptr<Communicator>(make(nccl));
}

std::unique_ptr<Communicator> make_plain(const RankParts& parts, const WorldOptions& options) {
  if (options.backend == "single") return std::make_unique<SingleCommunicator>();
  if (options.backend == "shm") {
    ShmCommunicator::Options node{};
    node.rank = parts.place.rank;
    node.size = parts.place.size;
    node.timeout = options.timeout;
    return std::make_unique<ShmCommunicator>(node, parts.memory, parts.pool, parts.board);
  }
  const NetworkOptions network_options{.backend = options.backend == "mpi" ? "mpi" : "gloo",
                                       .interfaces = options.interfaces,
                                       .timeout = options.timeout,
                                       .board = parts.board};
  const Network network = connect_network(*parts.session, parts.place, network_options);
  if (options.backend == "nccl") return make_nccl(parts, network, options);
  if (options.backend == "hierarchical") return make_hierarchical(parts, network, options);
  return world_of(network, *parts.session);
}

// For LOCKSTEP_DEBUG=INFO, or NCCL_DEBUG as its users have it.
bool wants_details() {
  for (const char* name : {"LOCKSTEP_DEBUG", "NCCL_DEBUG"}) {
    const auto level = env(name);
    if (level && (*level == "INFO" || *level == "TRACE")) return true;
  }
  return false;
}

}  // namespace

bool needs_network(const std::string& backend) {
  return backend == "gloo" || backend == "hierarchical" || backend == "mpi" || backend == "nccl";
}

std::unique_ptr<Communicator> make_communicator(const RankParts& parts, const WorldOptions& options) {
  auto communicator = make_plain(parts, options);
  if (options.algorithm == "ring") {
    communicator = std::make_unique<RingCommunicator>(std::move(communicator));
  } else if (options.algorithm != "fold") {
    throw ConfigError("algorithm ", options.algorithm, ": expected fold or ring");
  }
  if (wants_details()) {
    Logger::from_environment(cat("rank ", parts.place.rank)).info("comm: ", communicator->describe());
  }
  return communicator;
}

}  // namespace lockstep::comm
