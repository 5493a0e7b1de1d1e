// A worker for the launcher's tests: does on the board what a training rank does. Usage: board_worker
// stop|pause|columns|data|step|save|adopt
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "lockstep/base/board.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/node_memory.h"

namespace {

using lockstep::Board;
using lockstep::RankState;

void nap() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
  nanosleep(&pause, nullptr);
}

int fail(lockstep::BoardRank& me, int code, const std::string& line) {
  me.fail(code, line);
  return code;
}

// Runs until the launcher says stop, as a rank that saves a checkpoint would.
int stop_on_request(const Board& board) {
  constexpr int kNapsToSave = 40;
  while (board.stop_requested.load() == 0) nap();
  for (int i = 0; i < kNapsToSave; ++i) nap();
  return lockstep::kExitStoppedOnRequest;
}

int miss_peer(const Board& board, lockstep::BoardRank& me, size_t peer) {
  while (board.ranks[peer].state.load() != RankState::kFailed) nap();
  return fail(me, 69, lockstep::cat("rank ", peer, " is gone"));
}

// Rank 0 writes a checkpoint, which is done when the file `go` is there; rank 1 dies meanwhile. A request to stop is
// seen by the file `go`.asked.
int save_while_a_peer_dies(Board& board, lockstep::BoardRank& me, size_t rank, const std::string& go) {
  me.doing.set("saving the checkpoint of step 12");
  if (rank == 1) {
    while (board.ranks[0].saving.load() == 0) nap();
    kill(getpid(), SIGKILL);
  }
  if (rank == 0) {
    const lockstep::SavingOnBoard saving(me);
    while (access(go.c_str(), F_OK) != 0) {
      if (board.stop_requested.load() != 0) std::ofstream(go + ".asked");
      nap();
    }
    board.saved.set("checkpoint step-000012.pt");
    std::ofstream(go + ".saved") << "yes";
  }
  return miss_peer(board, me, 1);
}

// Rank 2 hangs. Rank 1 gives up waiting for it and takes a while to end; rank 0, which hears of it, ends at once.
int give_up_in_turn(lockstep::BoardRank& me, size_t rank) {
  me.beat();
  while (rank == 2) pause();
  if (rank == 1) {
    usleep(200'000);
    me.miss(2);
  }
  return fail(me, 69, rank == 1 ? "waited for rank 2" : "rank 1 gave up");
}

// Leaves a process behind that adopts orphans, with an orphan that has written its number to `file`.
int leave_an_adopter(const std::string& file) {
  if (fork() == 0) {
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const std::string daemon = "setsid sh -c 'echo $$ >" + file + "; exec sleep 100' &";
    if (fork() == 0) execl("/bin/sh", "sh", "-c", daemon.c_str(), nullptr);
    for (;;) pause();
  }
  while (!std::ifstream(file).is_open()) nap();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto memory = lockstep::NodeMemory::from_env(lockstep::env("LOCKSTEP_NODE_MEMORY").value_or(""));
  const lockstep::Mapping mapping(memory.board.get());
  Board& board = *Board::attach(mapping.data());
  const auto rank = static_cast<size_t>(*lockstep::env_int("RANK", 0, 63));
  auto& me = board.ranks[rank];
  if (mode == "stop") {
    me.state.store(RankState::kRunning);
    return stop_on_request(board);
  }
  if (mode == "pause") {  // until the launcher has been stopped for a while
    while (board.paused_ns.load() == 0) nap();
    return 0;
  }
  if (mode == "columns") {  // until the terminal's width changes
    const int before = board.columns.load();
    std::cout << before << std::endl;
    while (board.columns.load() == before) nap();
    std::cout << board.columns.load() << std::endl;
    return 0;
  }
  if (mode == "save") return save_while_a_peer_dies(board, me, rank, argv[2]);
  if (mode == "adopt") return leave_an_adopter(argv[2]);
  if (mode == "data") return rank == 0 ? fail(me, 65, "train.idx: byte 3: not an IDX file") : miss_peer(board, me, 0);
  me.state.store(RankState::kRunning);
  me.step.store(7);
  me.doing.set("fold of bucket 1/2 (fc.weight …)");
  board.saved.set("checkpoint step-000005.pt");
  board.first_step_ns.store(1);
  if (mode == "late") return give_up_in_turn(me, rank);
  return rank == 1 ? fail(me, 70, "weights gone astray") : miss_peer(board, me, 1);
}
