// Tests of the shm backend with the ranks of a node as threads of this process, each with a small pool of its own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/comm/shm/shm_communicator.h"

namespace lockstep::comm::testing {

class NodeOfThreads {
 public:
  explicit NodeOfThreads(int size, std::chrono::milliseconds timeout = std::chrono::seconds(60))
      : memory_(NodeMemory::create(size)),
        segment_(memory_.comm.get()),
        board_(memory_.board.get()),
        timeout_(timeout) {
    for (auto& pool : memory_.pools) {
      pool = create_memfd("small-pool", size_t{64} << 20);
      pools_.push_back(std::make_unique<Pool>(Descriptor(dup(pool.get()))));
    }
  }

  ShmCommunicator::Options options(int rank) const {
    return {.rank = rank, .size = static_cast<int>(pools_.size()), .timeout = timeout_};
  }
  ShmNode::Options node_options(int rank) const { return {.self = rank, .size = static_cast<int>(pools_.size())}; }
  Pool& pool(int rank) { return *pools_[static_cast<size_t>(rank)]; }
  Board* board() { return Board::attach(board_.data()); }
  // The same mappings for all ranks, those of their pools.
  ShmMemory memory() const {
    std::vector<std::byte*> pools;
    for (const auto& pool : pools_) pools.push_back(pool->mapping().data());
    return {segment_.at<ShmSegment>(0), std::move(pools)};
  }

  void run_ranks(const std::function<void(int rank)>& body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < pools_.size(); ++rank) threads.emplace_back(body, static_cast<int>(rank));
    for (auto& thread : threads) thread.join();
  }

  void run(const std::function<void(ShmCommunicator&)>& body) {
    run_ranks([&](int rank) {
      ShmCommunicator comm(options(rank), memory(), pool(rank), board());
      body(comm);
    });
  }

 private:
  NodeMemory memory_;
  Mapping segment_, board_;
  std::vector<std::unique_ptr<Pool>> pools_;
  std::chrono::milliseconds timeout_;
};

}  // namespace lockstep::comm::testing
