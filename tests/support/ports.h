// TCP ports of 127.0.0.1, for tests.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "lockstep/base/error.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep::testing_support {

// A port on which somebody listens; nobody answers but who accepts on its descriptor.
class ListeningPort {
 public:
  ListeningPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_.get(), any, length) != 0 || listen(socket_.get(), 8) != 0 ||
        getsockname(socket_.get(), any, &length) != 0) {
      throw IoError("no port: ", errno_text(errno));
    }
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }
  int descriptor() const { return socket_.get(); }

 private:
  Descriptor socket_;
  int port_ = 0;
};

inline bool has_ipv6() {
  const Descriptor socket_fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  return socket_fd && bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace lockstep::testing_support
