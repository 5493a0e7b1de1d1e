#include "lockstep/comm/shm/peers.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/rank_text.h"
#include "lockstep/comm/call.h"

namespace lockstep::comm {

Peers::Peers(Board* board, int self, int size, std::vector<int> world_ranks)
    : board_(board),
      self_(self),
      world_ranks_(std::move(world_ranks)),
      program_(this->self().worlds.load()),
      pids_(static_cast<size_t>(size)),
      pidfds_(static_cast<size_t>(size)) {
  for (int rank = static_cast<int>(world_ranks_.size()); rank < size; ++rank) world_ranks_.push_back(rank);
  this->self().pid.store(getpid());
  this->self().beat();
  RankState starting = RankState::kStarting;
  this->self().state.compare_exchange_strong(starting, RankState::kRunning);
}

// Whether the peer's process has ended. Ranks that are threads of one process, as in tests, live as long as this one.
bool Peers::gone(int rank) {
  const auto index = static_cast<size_t>(rank);
  const BoardRank& peer = board_->ranks[index];
  if (peer.worlds.load() < program_) return false;  // the process is an earlier program's of the rank's command
  const pid_t pid = peer.pid.load();
  if (pid == 0 || pid == getpid()) return false;
  if (std::exchange(pids_[index], pid) != pid) pidfds_[index] = Descriptor();
  if (!pidfds_[index]) {
    pidfds_[index] = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfds_[index] && errno != ESRCH) return false;
  }
  pollfd ended{pidfds_[index].get(), POLLIN, 0};
  if (pidfds_[index] && poll(&ended, 1, 0) != 1) return false;
  return peer.pid.load() == pid;  // else its command goes on
}

void Peers::check(std::span<const int> awaited, const std::string& at) {
  for (const int rank : awaited) {
    if (rank == self_) continue;
    const BoardRank& peer = board_->ranks[static_cast<size_t>(rank)];
    if (peer.worlds.load() > program_) {
      throw CommError(called(rank), " has left this program, and its command goes on with the next, while rank ",
                      world_rank_of(self_), " waits for it at ", at, "; ", kUnevenLoops);
    }
    const bool is_gone = gone(rank);  // before the state, which a process that ends says first
    const RankState state = peer.state_in(program_);
    if (state == RankState::kFailed) {
      throw CommError(called(rank), " failed: ", peer.error.get(), " (rank ", world_rank_of(self_), " was at ", at,
                      ")");
    }
    if (state == RankState::kFinished) {
      throw CommError(called(rank), " has finished while rank ", world_rank_of(self_), " waits for it at ", at, "; ",
                      kUnevenLoops);
    }
    if (is_gone) throw CommError(called(rank), " died while rank ", world_rank_of(self_), " waited for it at ", at);
  }
}

std::string Peers::describe(int rank) const {
  return cat(called(rank), ' ', state_text(board_->ranks[static_cast<size_t>(rank)]));
}

std::string Peers::called(int rank) const { return cat("rank ", world_rank_of(rank), pid_of(rank)); }

std::string Peers::pid_of(int rank) const {
  const int pid = board_->ranks[static_cast<size_t>(rank)].pid.load();
  return pid == 0 ? "" : cat(" (pid ", pid, ")");
}

}  // namespace lockstep::comm
