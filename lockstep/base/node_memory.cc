#include "lockstep/base/node_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "lockstep/base/board.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr const char* kVariable = "LOCKSTEP_NODE_MEMORY";
constexpr const char* kPrefix = "lockstep-";  // of the memfds' names

// The numbers in a list such as "3,4,5"; none if it is not one.
std::vector<int> numbers_in(const std::string& value) {
  std::vector<int> out;
  const char* at = value.data();
  for (const char* const end = at + value.size(); at <= end; ++at) {
    int fd = -1;
    const auto [next, error] = std::from_chars(at, end, fd);
    if (error != std::errc() || fd < 0 || (next != end && *next != ',')) return {};
    out.push_back(fd);
    at = next;
  }
  return out;
}

// At least a board's, a communicator's and a pool's, all of them open.
std::vector<int> descriptors_in(const std::string& value) {
  std::vector<int> out = numbers_in(value);
  if (out.empty() || std::any_of(out.begin(), out.end(), [](int fd) { return fcntl(fd, F_GETFD) < 0; })) {
    throw ConfigError("LOCKSTEP_NODE_MEMORY=", value, ": not a list of open descriptors; only the launcher sets it");
  }
  if (out.size() < 3) throw ConfigError("LOCKSTEP_NODE_MEMORY=", value, ": too few descriptors");
  return out;
}

Descriptor duplicate(int fd) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) throw IoError("shared memory: ", errno_text(errno), "; raise the limit on open files (ulimit -n)");
  return Descriptor(copy);
}

// The variable may be stale, inherited by a program further down, so only the launcher's own memfds count.
void mark_inherited(bool close_on_exec) {
  const auto value = env(kVariable);
  for (const int fd : value ? numbers_in(*value) : std::vector<int>{}) {
    std::array<char, 64> target{};
    const ssize_t length = readlink(cat("/proc/self/fd/", fd).c_str(), target.data(), target.size());
    const std::string_view name(target.data(), static_cast<size_t>(std::max<ssize_t>(length, 0)));
    if (!name.starts_with(cat("/memfd:", kPrefix))) continue;
    const int flags = fcntl(fd, F_GETFD);
    fcntl(fd, F_SETFD, close_on_exec ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC);
  }
}

// The launcher passes its memory through exec. What a worker starts itself, even before it joins the world, is not to
// inherit it.
[[maybe_unused]] const bool closed_on_exec = (mark_inherited(/*close_on_exec=*/true), true);  // before main

}  // namespace

size_t pool_address_space(int local_ranks) {
  constexpr size_t kMostTogether = size_t{32} << 40;  // of the 128 TiB that a process has
  const size_t memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::min(2 * memory, kMostTogether / static_cast<size_t>(local_ranks));
}

NodeMemory NodeMemory::create(int local_ranks) {
  NodeMemory memory;
  memory.board = create_memfd(cat(kPrefix, "board"), sizeof(Board));
  Board::create(Mapping(memory.board.get()).data(), local_ranks);
  memory.comm = create_memfd(cat(kPrefix, "comm"), kCommBytes);
  for (int rank = 0; rank < local_ranks; ++rank) {
    memory.pools.push_back(create_memfd(cat(kPrefix, "pool-", rank), pool_address_space(local_ranks)));
  }
  return memory;
}

std::string NodeMemory::to_env() const {
  std::string text = cat(board.get(), ',', comm.get());
  for (const auto& pool : pools) text += cat(',', pool.get());
  return text;
}

void NodeMemory::keep_on_exec() { mark_inherited(/*close_on_exec=*/false); }

int NodeMemory::board_in(const std::string& value) { return descriptors_in(value)[0]; }

NodeMemory NodeMemory::from_env(const std::string& value) {
  NodeMemory memory;
  for (const int fd : descriptors_in(value)) memory.pools.push_back(duplicate(fd));
  memory.board = std::move(memory.pools[0]);
  memory.comm = std::move(memory.pools[1]);
  memory.pools.erase(memory.pools.begin(), memory.pools.begin() + 2);
  return memory;
}

}  // namespace lockstep
