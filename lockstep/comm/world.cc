#include "lockstep/comm/world.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/backends.h"
#include "lockstep/comm/fold_tree.h"
#include "lockstep/comm/meeting/rendezvous.h"
#include "lockstep/comm/meeting/session.h"

namespace lockstep {
namespace comm {
namespace {

// The pool stays for the process's life, for tensors may outlive the world; a second one could not take its place.
Pool* install_pool(Descriptor memfd) {
  static std::atomic<bool> installed = false;
  if (installed.exchange(true)) throw BugError("lockstep::init was called twice in one process");
  return Pool::install(std::make_unique<Pool>(std::move(memfd)));
}

Descriptor duplicate(const Descriptor& fd) { return Descriptor(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

}  // namespace

World::World(const Place& place, NodeMemory memory, const WorldOptions& options)
    : World(place, std::move(memory), options, nullptr) {}

World::World(const Place& place, NodeMemory memory, const WorldOptions& options, std::unique_ptr<Session> session)
    : place_(place),
      memory_(std::move(memory)),
      board_memory_(memory_.board.get()),
      board_(Board::attach(board_memory_.data())),
      pool_(install_pool(duplicate(memory_.pools.at(static_cast<size_t>(place.local_rank))))),
      session_(std::move(session)),
      communicator_(make_communicator({place_, memory_, *pool_, board_, session_.get()}, options)) {
  self().pid.store(getpid());
  self().state.store(RankState::kRunning);
}

World::~World() {
  communicator_.reset();
  if (session_) session_->store.close();
}

World::Lanes World::own_lanes(int lanes) const {
  if (!lanes_fit(lanes, size())) {
    throw ConfigError(lanes, " lanes on ", size(),
                      " ranks: each rank needs a power of two of lanes, or one rank all of them");
  }
  const int own = lanes / size();
  return {rank() * own, (rank() + 1) * own};
}

}  // namespace comm

std::shared_ptr<comm::World> init(const InitOptions& options) {
  comm::Place place = comm::find_place(
      {.rank = options.rank, .size = options.world_size, .init_method = options.init_method, .parent = getppid()},
      [](const char* name) { return env(name); });
  const comm::WorldOptions world{.backend = comm::choose_backend(options.backend, place),
                                 .algorithm = options.algorithm,
                                 .interfaces = options.interfaces,
                                 .timeout = options.timeout};
  const auto inherited = env("LOCKSTEP_NODE_MEMORY");
  if (!comm::needs_network(world.backend)) {
    NodeMemory memory = inherited         ? NodeMemory::from_env(*inherited)
                        : place.size == 1 ? NodeMemory::create(1)
                                          : comm::meet(place, options.timeout);
    return std::make_shared<comm::World>(place, std::move(memory), world);
  }
  if (world.backend != "mpi") comm::named_interfaces(options.interfaces);  // a slip ends each rank by itself
  const Deadline deadline(options.timeout);
  auto session = comm::open_session(place, deadline);
  place.local_size = static_cast<int>(session->node_ranks().size());
  NodeMemory memory = inherited ? NodeMemory::from_env(*inherited)
                                : comm::meet_on_node(place, session->table, session->store, deadline);
  return std::make_shared<comm::World>(place, std::move(memory), world, std::move(session));
}

}  // namespace lockstep
