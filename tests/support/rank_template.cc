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

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

extern char** environ;

namespace lockstep::testing_support {
namespace {

constexpr const char* kVariable = "LOCKSTEP_TEST_TEMPLATE";  // the number of the socket
constexpr size_t kMostBytes = 1u << 17;                      // of a message
constexpr size_t kMostDescriptors = 64;
constexpr int kAside = 512;  // descriptors below it are the rank's

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
  const auto own = env(line.substr(0, equals).c_str());
  return line != "OMP_NUM_THREADS=1" && (!own || *own != line.substr(equals + 1));
}

// A message: the numbers that its descriptors are to have, and the environment, of lines that end with NUL.
struct Message {
  std::vector<int> numbers;
  std::string lines;
};

void send(int socket, const NewRank& rank) {
  std::string bytes;
  std::vector<int> descriptors(rank.descriptors.begin(), rank.descriptors.end());
  descriptors.push_back(rank.output);
  const auto count = static_cast<int>(descriptors.size());
  bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
  for (const int number : descriptors) bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  for (const std::string& line : rank.environment) bytes += line + '\0';
  if (bytes.size() > kMostBytes || descriptors.size() > kMostDescriptors) throw BugError("too large an environment");
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control.data(), message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) throw IoError("the template of ranks: ", errno_text(errno));
}

// Nothing once the other end is closed. The descriptors lie from kAside on.
std::optional<Message> receive(int socket, std::vector<int>& aside) {
  std::string bytes(kMostBytes, '\0');
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control.data(), message.msg_controllen = control.size();
  const ssize_t size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (size <= 0) return std::nullopt;
  Message read;
  int count = 0;
  std::memcpy(&count, bytes.data(), sizeof count);
  read.numbers.resize(static_cast<size_t>(count));
  std::memcpy(read.numbers.data(), bytes.data() + sizeof count, read.numbers.size() * sizeof(int));
  const size_t head = (read.numbers.size() + 1) * sizeof(int);
  read.lines = bytes.substr(head, static_cast<size_t>(size) - head);
  std::vector<int> received(read.numbers.size());
  std::memcpy(received.data(), CMSG_DATA(CMSG_FIRSTHDR(&message)), received.size() * sizeof(int));
  for (const int each : received) {
    aside.push_back(fcntl(each, F_DUPFD_CLOEXEC, kAside));
    close(each);
  }
  return read;
}

// Makes this process what a program of that environment and those descriptors would be at the beginning of its main().
void become(const Message& message, const std::vector<int>& aside) {
  const size_t output = aside.size() - 1;
  for (size_t i = 0; i < output; ++i) dup2(aside[i], message.numbers[i]);
  dup2(aside[output], 1), dup2(aside[output], 2);
  for (const int each : aside) close(each);
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
bool fork_twice(int socket, const Message& message, const std::vector<int>& aside) {
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
  send(socket, rank);
  pid_t pid = -1;
  char done = 0;
  const bool is_there =
      read(socket, &pid, sizeof pid) == sizeof pid && read(socket, &done, 1) == 1 && pid > 0 && done == 1;
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  if (!is_there) throw BugError("the template of ranks has failed");
  return pid;
}

bool serve_as_template() {
  const auto number = env_int(kVariable, 0, 1 << 20);
  if (!number) return false;
  const int socket = static_cast<int>(*number);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  std::vector<int> aside;
  while (const auto message = receive(socket, aside)) {
    if (fork_twice(socket, *message, aside)) return false;
    for (const int each : aside) close(each);
    aside.clear();
  }
  return true;
}

}  // namespace lockstep::testing_support
