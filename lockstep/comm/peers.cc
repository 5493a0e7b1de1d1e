#include "lockstep/comm/peers.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::comm {

Peers::Peers(Board* board, int self, int size) : board_(board), self_(self), pidfds_(static_cast<size_t>(size)) {
  this->self().pid.store(getpid());
  this->self().beat_ns.store(monotonic_ns());
  RankState starting = RankState::kStarting;
  this->self().state.compare_exchange_strong(starting, RankState::kRunning);
}

// Whether the process has ended. Ranks that are threads of one process (as tests have them) live as long as we do.
bool Peers::gone(int rank) {
  const auto index = static_cast<size_t>(rank);
  const pid_t pid = board_->ranks[index].pid.load();
  if (pid == 0 || pid == getpid()) return false;
  if (!pidfds_[index]) {
    pidfds_[index] = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfds_[index]) return errno == ESRCH;
  }
  pollfd ended{pidfds_[index].get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 1;
}

void Peers::check(const std::string& waiting_for) {
  for (int rank = 0; rank < static_cast<int>(pidfds_.size()); ++rank) {
    if (rank == self_) continue;
    const BoardRank& peer = board_->ranks[static_cast<size_t>(rank)];
    const RankState state = peer.state.load(std::memory_order_acquire);
    if (state == RankState::kFailed) {
      throw CommError("rank ", rank, pid_of(rank), " failed: ", peer.error.get(), " (rank ", self_, " was at ",
                      waiting_for, ")");
    }
    if (state == RankState::kFinished) {
      throw CommError("rank ", rank, pid_of(rank), " has finished while rank ", self_, " waits for it at ",
                      waiting_for);
    }
    if (gone(rank)) {
      throw CommError("rank ", rank, pid_of(rank), " died while rank ", self_, " waited for it at ", waiting_for);
    }
  }
}

std::string Peers::pid_of(int rank) const {
  const int pid = board_->ranks[static_cast<size_t>(rank)].pid.load();
  return pid == 0 ? "" : cat(" (pid ", pid, ")");
}

}  // namespace lockstep::comm
