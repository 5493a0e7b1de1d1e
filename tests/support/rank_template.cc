#include "support/rank_template.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "lockstep/base/descriptor_passing.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

extern char** environ;

namespace lockstep::testing_support {
namespace {

constexpr const char* kVariable = "LOCKSTEP_TEST_TEMPLATE";  // the number of the socket
constexpr size_t kMostBytes = 1u << 17;                      // of a message
constexpr int kAside = 512;                                  // descriptors below it are the rank's

#ifdef LOCKSTEP_THREAD_SANITIZER
constexpr bool kForks = false;
#else
constexpr bool kForks = true;
#endif

bool is_read_at_load(const std::string& line) {
  constexpr std::array kPrefixes = {"LD_", "OMP_", "GOMP_", "KMP_", "MKL_", "MALLOC_", "GLIBC_", "ASAN_", "UBSAN_"};
  const bool is = std::ranges::any_of(kPrefixes, [&](const char* prefix) { return line.starts_with(prefix); });
  if (!is) return false;
  const size_t equals = line.find('=');
  const std::string name = line.substr(0, equals);
  const auto templates = name == "OMP_NUM_THREADS" ? std::optional<std::string>("1") : env(name.c_str());
  return templates != line.substr(equals + 1);
}

// What a packet's bytes hold: the numbers that its descriptors are to have, but the last one, which is the output, and
// the environment, of lines that end with NUL.
struct Message {
  std::vector<int> numbers;
  std::string lines;
};

std::string bytes_of(const NewRank& rank) {
  const auto count = static_cast<int>(rank.descriptors.size());
  std::string bytes(reinterpret_cast<const char*>(&count), sizeof count);
  bytes.append(reinterpret_cast<const char*>(rank.descriptors.data()), rank.descriptors.size_bytes());
  for (const std::string& line : rank.environment) bytes += line + '\0';
  if (bytes.size() > kMostBytes) throw BugError("too large an environment");
  return bytes;
}

Message message_in(const std::string& bytes) {
  int count = 0;
  std::memcpy(&count, bytes.data(), sizeof count);
  Message message{.numbers = std::vector<int>(static_cast<size_t>(count)), .lines = {}};
  const size_t size = message.numbers.size() * sizeof(int);
  std::memcpy(message.numbers.data(), bytes.data() + sizeof count, size);
  message.lines = bytes.substr(sizeof count + size);
  return message;
}

// The next rank's descriptors, from kAside on, and its message; nothing once the other end is closed.
std::optional<Message> receive(int socket, std::vector<Descriptor>& aside) {
  const auto packet = receive_packet(socket, kMostBytes);
  if (!packet || packet->bytes.empty()) return std::nullopt;
  for (const Descriptor& each : packet->descriptors) {
    aside.emplace_back(fcntl(each.get(), F_DUPFD_CLOEXEC, kAside));
  }
  return message_in(packet->bytes);
}

// Makes this process what a program of that environment and those descriptors would be at the beginning of its main().
void become(const Message& message, std::vector<Descriptor>& aside) {
  for (size_t i = 0; i < message.numbers.size(); ++i) dup2(aside[i].get(), message.numbers[i]);
  for (const int output : {1, 2}) dup2(aside.back().get(), output);
  aside.clear();
  clearenv();
  size_t padding = 1;
  for (size_t at = 0; at < message.lines.size(); at = message.lines.find('\0', at) + 1) {
    const std::string line = message.lines.c_str() + at;
    const size_t equals = line.find('=');
    setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 1);
    if (line.starts_with("LOCKSTEP_TEST_RANK=")) padding += 4096 * std::stoul(line.substr(equals + 1));
  }
  // Ranks that are programs of their own have other addresses each.
  [[maybe_unused]] static char* const volatile kept = new char[padding];
}

// The rank is the child of a child that ends, so that it becomes one of the process that asks for it.
bool fork_twice(int socket, const Message& message, std::vector<Descriptor>& aside) {
  const pid_t between = fork();
  if (between == 0) {
    const pid_t rank = fork();
    if (rank != 0) {
      const bool told = write(socket, &rank, sizeof rank) == sizeof rank;
      _exit(told && rank > 0 ? 0 : 1);
    }
    close(socket);
    become(message, aside);
    return true;
  }
  int status = 1;
  if (between > 0) waitpid(between, &status, 0);
  const char done = status == 0 ? 1 : 0;
  if (write(socket, &done, 1) != 1) _exit(1);
  return false;
}

int start_template() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw IoError("socketpair: ", errno_text(errno));
  const int inherited = fcntl(ends[1], F_DUPFD, kAside);
  std::vector<std::string> lines = {cat(kVariable, '=', inherited), "OMP_NUM_THREADS=1"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("OMP_NUM_THREADS=")) lines.emplace_back(*entry);
  }
  std::vector<char*> pointers;
  for (std::string& line : lines) pointers.push_back(line.data());
  pointers.push_back(nullptr);
  std::string name = "template of ranks";
  char* arguments[] = {name.data(), nullptr};
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments, pointers.data());
  close(ends[1]), close(inherited);
  if (error != 0) throw IoError("posix_spawn: ", errno_text(error));
  return ends[0];  // the template ends when it is closed, with this process
}

}  // namespace

std::optional<pid_t> fork_rank(const NewRank& rank) {
  if (!kForks || std::ranges::any_of(rank.environment, is_read_at_load)) return std::nullopt;
  static const int socket = start_template();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<int> descriptors(rank.descriptors.begin(), rank.descriptors.end());
  descriptors.push_back(rank.output);
  const bool is_asked = send_packet(socket, bytes_of(rank), descriptors);
  pid_t pid = -1;
  char done = 0;
  const bool is_there =
      is_asked && read(socket, &pid, sizeof pid) == sizeof pid && read(socket, &done, 1) == 1 && pid > 0 && done == 1;
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  if (!is_there) throw BugError("the template of ranks has failed");
  return pid;
}

bool serve_as_template() {
  const auto number = env_int(kVariable, 0, 1 << 20);
  if (!number) return false;
  const int socket = static_cast<int>(*number);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  std::vector<Descriptor> aside;
  while (const auto message = receive(socket, aside)) {
    if (fork_twice(socket, *message, aside)) return false;
    aside.clear();
  }
  return true;
}

}  // namespace lockstep::testing_support
