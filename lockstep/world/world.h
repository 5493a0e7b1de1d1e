// The world of a run as one of its ranks sees it: the rank's place, its communicator, its pool and the node's board.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lockstep/base/board.h"
#include "lockstep/base/node_memory.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/memory/pool.h"
#include "lockstep/rendezvous/place/environment.h"

namespace lockstep {

struct Session;

struct WorldOptions {
  std::string backend = "single";  // one of backends() (backends.h)
  std::string interfaces = {};     // Gloo and NCCL: "eth0" or "eth0,eth1"; empty: the one that reaches the rendezvous
  int gpu = -1;                    // NCCL: this rank's, among those that it sees; -1: that of its local rank
  std::chrono::milliseconds timeout{600'000};
  std::string timeout_name = "WorldOptions::timeout";  // what the user sets it by, for messages
  // Over a network but NCCL's: how often ranks tell each other that they are alive, at least 8 times a timeout. Calls
  // with a timeout of a few of these periods are not waited for beyond it.
  std::chrono::milliseconds heartbeat{500};
  // Sums over ranks have the same bits at any number of ranks. Without it NCCL adds floating-point numbers in an order
  // of its own, which takes less time; the other backends don't change.
  bool same_bits = true;
};

class World {
 public:
  // Joins the world that `place` describes, over the node memory that its launcher or local rank 0 created. Installs
  // the rank's pool as libtorch's CPU allocator for the rest of the process, so there is one World in a process; after
  // an error the process may try again. A world that is connected by a network has a session. All ranks call it at
  // once. Throws ConfigError, IoError, CommError, and BugError for a second world.
  World(const rendezvous::Place& place, NodeMemory memory, const WorldOptions& options);
  World(const rendezvous::Place& place, NodeMemory memory, const WorldOptions& options,
        std::unique_ptr<Session> session);
  // The world of a group of `whole`'s ranks, of which this process is one: `group` is their communicator, by which they
  // are numbered. Pool and board are those of the whole, which lives at least as long.
  World(std::shared_ptr<World> whole, std::shared_ptr<comm::Communicator> group);
  ~World();

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  int local_rank() const { return place_.local_rank; }
  const rendezvous::Place& place() const { return place_; }

  // This rank's share of `lanes` lanes, [first, last). Throws ConfigError unless lanes_fit() (fold_tree.h).
  struct Lanes {
    int first, last;
  };
  Lanes own_lanes(int lanes) const;

  comm::Communicator& communicator() const { return *communicator_; }
  comm::Pool& pool() const { return *pool_; }
  const NodeMemory& memory() const { return whole_ ? whole_->memory() : memory_; }
  Board& board() const { return *board_; }
  BoardRank& self() const { return board_->ranks[static_cast<size_t>(place_.local_rank)]; }

 private:
  rendezvous::Place place_;
  NodeMemory memory_;
  std::shared_ptr<World> whole_;  // of a group's world
  Mapping board_memory_;
  Board* board_;
  std::unique_ptr<comm::Pool> new_pool_;  // until the world is joined; the process owns it then
  comm::Pool* pool_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<comm::Communicator> communicator_;
};

struct InitOptions {
  std::string backend = "auto";        // auto, single, shm, gloo, hierarchical, mpi, nccl
  std::string interfaces = {};         // see WorldOptions
  int gpu = -1;                        // see WorldOptions
  int rank = -1;                       // -1: from the environment that the launcher has set
  int world_size = -1;                 // -1: likewise
  std::string init_method = "env://";  // the rendezvous without our launcher: env://, tcp://host:port, file:///path
  std::chrono::milliseconds timeout{600'000};
  std::string timeout_name = "InitOptions::timeout";  // see WorldOptions
  std::chrono::milliseconds heartbeat{500};           // see WorldOptions
  bool same_bits = true;                              // see WorldOptions
};

// Joins the world that the options or the environment describe; a world of one rank if neither describes any. All ranks
// call it at once. Throws ConfigError for contradictions, CommError if ranks are missing at the timeout, IoError; after
// an error it may be called again.
std::shared_ptr<World> init(const InitOptions& options = {});

}  // namespace lockstep
