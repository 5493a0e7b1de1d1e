// A worker for the launcher's tests: does on the board what a training rank does. Usage: board_worker
// stop|pause|columns|data|step
#include <time.h>

#include <cstdlib>
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
  if (mode == "data") return rank == 0 ? fail(me, 65, "train.idx: byte 3: not an IDX file") : miss_peer(board, me, 0);
  me.state.store(RankState::kRunning);
  me.step.store(7);
  me.doing.set("fold of bucket 1/2 (fc.weight …)");
  board.saved.set("checkpoint step-000005.pt");
  board.first_step_ns.store(1);
  return rank == 1 ? fail(me, 70, "weights gone astray") : miss_peer(board, me, 1);
}
