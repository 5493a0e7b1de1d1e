#include "lockstep/base/node_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"

namespace lockstep {

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

NodeMemory NodeMemory::from_env(const std::string& value) {
  std::vector<Descriptor> descriptors;
  const char* at = value.data();
  for (const char* const end = at + value.size(); at <= end; ++at) {
    int fd = -1;
    const auto [next, error] = std::from_chars(at, end, fd);
    const int flags = error == std::errc() ? fcntl(fd, F_GETFD) : -1;
    if (flags < 0 || (next != end && *next != ',')) {
      throw ConfigError("LOCKSTEP_NODE_MEMORY=", value, ": not a list of open descriptors; only the launcher sets it");
    }
    fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    descriptors.emplace_back(fd);
    at = next;
  }
  if (descriptors.size() < 3) throw ConfigError("LOCKSTEP_NODE_MEMORY=", value, ": too few descriptors");
  NodeMemory memory;
  memory.board = std::move(descriptors[0]);
  memory.comm = std::move(descriptors[1]);
  for (size_t i = 2; i < descriptors.size(); ++i) memory.pools.push_back(std::move(descriptors[i]));
  return memory;
}

}  // namespace lockstep
