#include "lockstep/base/node_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"

namespace lockstep {
namespace {

// At least a board's, a communicator's and a pool's, all of them open.
std::vector<int> descriptors_in(const std::string& value) {
  std::vector<int> out;
  const char* at = value.data();
  for (const char* const end = at + value.size(); at <= end; ++at) {
    int fd = -1;
    const auto [next, error] = std::from_chars(at, end, fd);
    if (error != std::errc() || fcntl(fd, F_GETFD) < 0 || (next != end && *next != ',')) {
      throw ConfigError("LOCKSTEP_NODE_MEMORY=", value, ": not a list of open descriptors; only the launcher sets it");
    }
    out.push_back(fd);
    at = next;
  }
  if (out.size() < 3) throw ConfigError("LOCKSTEP_NODE_MEMORY=", value, ": too few descriptors");
  return out;
}

}  // namespace

size_t pool_address_space(int local_ranks) {
  constexpr size_t kMostTogether = size_t{32} << 40;  // of the 128 TiB that a process has
  const size_t memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::min(2 * memory, kMostTogether / static_cast<size_t>(local_ranks));
}

NodeMemory NodeMemory::create(int local_ranks) {
  NodeMemory memory;
  memory.board = create_memfd("lockstep-board", sizeof(Board));
  Board::create(Mapping(memory.board.get()).data(), local_ranks);
  memory.comm = create_memfd("lockstep-comm", kCommBytes);
  for (int rank = 0; rank < local_ranks; ++rank) {
    memory.pools.push_back(create_memfd(cat("lockstep-pool-", rank), pool_address_space(local_ranks)));
  }
  return memory;
}

std::string NodeMemory::to_env() const {
  std::string text = cat(board.get(), ',', comm.get());
  for (const auto& pool : pools) text += cat(',', pool.get());
  return text;
}

int NodeMemory::board_in(const std::string& value) { return descriptors_in(value)[0]; }

NodeMemory NodeMemory::from_env(const std::string& value) {
  NodeMemory memory;
  for (const int fd : descriptors_in(value)) {
    fcntl(fd, F_SETFD, fcntl(fd, F_GETFD) | FD_CLOEXEC);
    memory.pools.emplace_back(fd);
  }
  memory.board = std::move(memory.pools[0]);
  memory.comm = std::move(memory.pools[1]);
  memory.pools.erase(memory.pools.begin(), memory.pools.begin() + 2);
  return memory;
}

}  // namespace lockstep
