#include "lockstep/world/world.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/lanes_fit.h"
#include "lockstep/base/lease.h"
#include "lockstep/base/log.h"
#include "lockstep/base/run_main.h"
#include "lockstep/comm/fold_tree.h"
#include "lockstep/rendezvous/rendezvous.h"
#include "lockstep/world/backends.h"
#include "lockstep/world/output_lines.h"
#include "lockstep/world/session.h"

namespace lockstep {
namespace {

// Whether this process has joined its one world, or is about to.
std::atomic<bool> joined = false;

[[noreturn]] void throw_joined() { throw BugError("lockstep::init was called twice in one process"); }

// Does a part of the joining. If it fails, the process may try again.
template <typename Act>
auto joining(Act&& act) -> decltype(act()) {
  try {
    return act();
  } catch (...) {
    joined = false;
    throw;
  }
}

std::unique_ptr<comm::Pool> make_pool(const NodeMemory& memory, int local_rank) {
  if (joined.exchange(true)) throw_joined();
  return joining([&] {
    const int memfd = memory.pools.at(static_cast<size_t>(local_rank)).get();
    const auto board = std::make_shared<Mapping>(memory.board.get());  // of the pool, which outlives the world
    comm::Pool::Options options;
    options.wanted = {board, &Board::attach(board->data())->wanted_bytes};
    return std::make_unique<comm::Pool>(Descriptor(fcntl(memfd, F_DUPFD_CLOEXEC, 0)), std::move(options));
  });
}

// The backend of a program that finds calls of another counted in the node's memory.
std::string backend_beside_used_memory(const std::string& wanted, const rendezvous::Place& place) {
  const Backend& backend = choose_backend(wanted, place);
  if (!backend.keeps_calls) return wanted;
  if (wanted != "auto") {
    throw ConfigError("backend ", backend.name,
                      ": an earlier program of this launch's command has used its shared memory; ",
                      "launch each program by itself, or take auto or gloo");
  }
  if (place.rank == 0) {
    Logger::from_environment("rank 0").warning(
        "an earlier program of this launch's command has used its shared memory, so ranks talk by gloo; for shared "
        "memory launch each program by itself");
  }
  return "gloo";
}

// Takes this rank's entry of the launcher's board over from an earlier program of its command. Each rank runs the same
// programs, but for those that join no world of several ranks.
void begin_program(const NodeMemory& memory, rendezvous::Place& place, std::string& backend) {
  const Mapping mapping(memory.board.get());
  Board& board = *Board::attach(mapping.data());
  BoardRank& self = board.ranks[static_cast<size_t>(place.local_rank)];
  // Once a process, which may call init() again after an error.
  static const uint32_t number = [&self] {
    self.begin();
    return self.worlds.load();
  }();
  static bool counts = false;
  place.program = static_cast<int>(number);
  if (number > 1 && place.rank == 0) board.saved.set("");
  if (self.counted_calls.load() != 0 && !counts) backend = backend_beside_used_memory(backend, place);
  if (!choose_backend(backend, place).keeps_calls) return;
  counts = true;
  self.counted_calls.store(1);
}

}  // namespace

World::World(const rendezvous::Place& place, NodeMemory memory, const WorldOptions& options)
    : World(place, std::move(memory), options, nullptr) {}

World::World(const rendezvous::Place& place, NodeMemory memory, const WorldOptions& options,
             std::unique_ptr<Session> session)
    : place_(place),
      memory_(std::move(memory)),
      board_memory_(memory_.board.get()),
      board_(Board::attach(board_memory_.data())),
      new_pool_(make_pool(memory_, place.local_rank)),
      pool_(new_pool_.get()),
      session_(std::move(session)),
      communicator_(joining([&] {
        return make_communicator({place_, memory_, *pool_, board_, session_.get()}, options);
      })) {
  comm::Pool::install(std::move(new_pool_));
  act_by_lease(&board_->lease_until_ns);  // the board stays mapped until the process ends
  if (env(kJobVariable)) end_with_lease();
  publish_errors_on(&self());
  self().pid.store(getpid());
  self().state.store(RankState::kRunning);
}

World::World(std::shared_ptr<World> whole, std::shared_ptr<comm::Communicator> group)
    : place_(whole->place_),
      whole_(std::move(whole)),
      board_(whole_->board_),
      pool_(whole_->pool_),
      communicator_(std::move(group)) {
  place_.rank = communicator_->rank();
  place_.size = communicator_->size();
}

World::~World() {
  if (whole_) return;
  communicator_.reset();
  // Ranks that still wait for this one learn that it has ended by itself, whoever launched it.
  RankState running = RankState::kRunning;
  if (std::uncaught_exceptions() == 0) self().state.compare_exchange_strong(running, RankState::kFinished);
  if (session_) session_->store.close();
  // A call that was left unfinished lives on, and so does the watch's thread while the store does not answer; both know
  // the board.
  static auto& boards = *new std::vector<Mapping>;
  boards.push_back(std::move(board_memory_));
}

World::Lanes World::own_lanes(int lanes) const {
  if (!lanes_fit(lanes, size())) {
    throw ConfigError(lanes, " lanes on ", size(),
                      " ranks: each rank needs a power of two of lanes, or one rank all of them");
  }
  const int own = lanes / size();
  return {rank() * own, (rank() + 1) * own};
}

std::shared_ptr<World> init(const InitOptions& wanted) {
  writes_lines();  // so that every program that joins a world has been loaded with it
  if (joined.load()) throw_joined();
  InitOptions options = wanted;
  rendezvous::Place place = rendezvous::find_place({.rank = options.rank,
                                                    .size = options.world_size,
                                                    .init_method = options.init_method,
                                                    .parent = rendezvous::launcher_pid()},
                                                   [](const char* name) { return env(name); });
  std::optional<NodeMemory> inherited;
  if (const auto memory = env("LOCKSTEP_NODE_MEMORY")) inherited = NodeMemory::from_env(*memory);
  if (inherited && place.size > 1) begin_program(*inherited, place, options.backend);
  // Whatever this machine lacks ends the rank here, before another waits for it.
  const Backend& backend = usable_backend(options, place);
  const WorldOptions world{.backend = std::string(backend.name),
                           .interfaces = options.interfaces,
                           .gpu = options.gpu >= 0 ? options.gpu : place.gpu,
                           .timeout = options.timeout,
                           .timeout_name = options.timeout_name,
                           .heartbeat = options.heartbeat,
                           .same_bits = options.same_bits};
  if (backend.reach != Backend::Reach::kNetwork) {
    NodeMemory memory = inherited         ? std::move(*inherited)
                        : place.size == 1 ? NodeMemory::create(1)
                                          : rendezvous::share_node_memory(place, bounded(options.timeout));
    return std::make_shared<World>(place, std::move(memory), world);
  }
  const Deadline deadline(options.timeout);
  auto session = open_session(place, deadline);
  place.local_size = static_cast<int>(session->node_ranks().size());
  NodeMemory memory = inherited ? std::move(*inherited)
                                : rendezvous::share_node_memory(place, session->table, session->store, deadline);
  return std::make_shared<World>(place, std::move(memory), world, std::move(session));
}

}  // namespace lockstep
