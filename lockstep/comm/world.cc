#include "lockstep/comm/world.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/fold_tree.h"
#include "lockstep/comm/rendezvous.h"
#include "lockstep/comm/shm_communicator.h"
#include "lockstep/comm/single_communicator.h"

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

World::World(const Place& place, NodeMemory memory, std::chrono::milliseconds timeout)
    : place_(place),
      memory_(std::move(memory)),
      board_memory_(memory_.board.get()),
      board_(Board::attach(board_memory_.data())),
      pool_(install_pool(duplicate(memory_.pools.at(static_cast<size_t>(place.local_rank))))) {
  if (place.size == 1) {
    communicator_ = std::make_unique<SingleCommunicator>();
    self().pid.store(getpid());
    self().state.store(RankState::kRunning);
  } else {
    communicator_ = std::make_unique<ShmCommunicator>(
        ShmCommunicator::Options{.rank = place.rank, .size = place.size, .timeout = timeout}, memory_, *pool_, board_);
  }
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
  const comm::Place place = comm::find_place(
      {.rank = options.rank, .size = options.world_size, .init_method = options.init_method, .parent = getppid()},
      [](const char* name) { return env(name); });
  comm::check_backend(options.backend, place);
  const auto inherited = env("LOCKSTEP_NODE_MEMORY");
  NodeMemory memory = inherited         ? NodeMemory::from_env(*inherited)
                      : place.size == 1 ? NodeMemory::create(1)
                                        : comm::meet(place, options.timeout);
  return std::make_shared<comm::World>(place, std::move(memory), options.timeout);
}

}  // namespace lockstep
