#include "lockstep/base/board.h"

#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/stack_on_signal.h"

namespace lockstep {

void BoardRank::begin() {
  pid.store(getpid());
  state.store(RankState::kStarting);
  ended.store(0);
  writes_stack.store(writes_stack_for_launcher() ? 1 : 0);
  saving.store(0);
  blocked.store(0);
  for (auto* count : {&step, &sequence, &reduced_bytes, &missed}) count->store(0);
  for (auto* time :
       {&beat_ns, &reduce_ns, &reduce_wait_ns, &data_wait_ns, &data_read_ns, &data_decode_ns, &data_transform_ns}) {
    time->store(0);
  }
  doing.set("");
  error.set("");
  overflow.set("");
  role.set("");
  remedy.set("");
  worlds.fetch_add(1);
}

Board* Board::create(void* memory, int local_ranks) {
  auto* board = static_cast<Board*>(memory);
  board->version = kVersion;
  board->local_ranks = local_ranks;
  board->magic.store(kMagic, std::memory_order_release);
  return board;
}

Board* Board::attach(void* memory) {
  auto* board = static_cast<Board*>(memory);
  if (board->magic.load(std::memory_order_acquire) != kMagic || board->version != kVersion) {
    throw BugError("the board is not of this version of lockstep: are its two programs of one build?");
  }
  return board;
}

}  // namespace lockstep
