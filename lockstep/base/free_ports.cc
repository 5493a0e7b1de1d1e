#include "lockstep/base/free_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <random>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep {
namespace {

constexpr int kFirst = 10'000;  // below it are the ports of well-known services
constexpr int kFewest = 1'000;  // ports of a range to draw from
constexpr int kTries = 1'000;   // each of another port
constexpr int kLinuxConnections = 32'768;

// The first of the ports that connections get.
int first_of_connections() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  return file >> first ? first : kLinuxConnections;
}

// A socket that is bound to `port` on all interfaces; 0: to any. It is empty where the port is taken.
Descriptor bound(int& port, bool again = false) {
  Descriptor socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket_fd) throw IoError("no socket: ", errno_text(errno));
  const int on = 1;  // of a server that has ended, as servers do
  if (again) setsockopt(socket_fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket_fd.get(), any, size) != 0 || getsockname(socket_fd.get(), any, &size) != 0) return {};
  port = ntohs(address.sin_port);
  return socket_fd;
}

}  // namespace

std::vector<int> free_ports(int count) {
  std::mt19937 random{std::random_device{}()};
  const int end = first_of_connections();
  const bool has_range = end - kFirst >= kFewest;
  std::uniform_int_distribution<int> drawn(kFirst, has_range ? end - 1 : kFirst);
  std::vector<Descriptor> sockets;  // which keep their ports to themselves until all are found
  std::vector<int> ports;
  for (int tries = 0; std::cmp_less(ports.size(), count); ++tries) {
    int port = has_range && tries < kTries ? drawn(random) : 0;
    Descriptor socket_fd = bound(port);
    if (!socket_fd && tries >= kTries) throw IoError("can't find a free TCP port: ", errno_text(errno));
    if (!socket_fd) continue;
    sockets.push_back(std::move(socket_fd));
    ports.push_back(port);
  }
  return ports;
}

int free_port() { return free_ports(1)[0]; }

bool is_free_port(int port) {
  const Descriptor socket_fd = bound(port, /*again=*/true);
  return socket_fd && listen(socket_fd.get(), 1) == 0;
}

}  // namespace lockstep
