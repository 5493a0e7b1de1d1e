#include "lockstep/base/board.h"

#include "lockstep/base/error.h"

namespace lockstep {

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
