#include "lockstep/rendezvous/place/tcp_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/host_name.h"
#include "lockstep/rendezvous/place/address.h"

namespace lockstep::rendezvous {
namespace {

struct Addresses {
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> list{nullptr, freeaddrinfo};
  std::string why;  // there are none
};

Addresses look_up(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  Addresses out;
  if (error != 0) out.why = gai_strerror(error);
  out.list.reset(error == 0 ? found : nullptr);
  return out;
}

Descriptor open_socket(const addrinfo& address) {
  return Descriptor(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int listen_on(const Descriptor& socket, const sockaddr* address, socklen_t size) {
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return bind(socket.get(), address, size) == 0 && listen(socket.get(), SOMAXCONN) == 0 ? 0 : errno;
}

// A machine that went away without a word is noticed within half a minute.
void notice_death(const Descriptor& socket) {
  const std::pair<int, int> seconds[] = {{TCP_KEEPIDLE, 10}, {TCP_KEEPINTVL, 5}, {TCP_KEEPCNT, 4}};
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  for (const auto& [option, value] : seconds) setsockopt(socket.get(), IPPROTO_TCP, option, &value, sizeof value);
}

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* const bytes = address->sa_family == AF_INET
                                ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                                : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  inet_ntop(address->sa_family, bytes, text, sizeof text);
  return text;
}

// `get` is getsockname or getpeername.
std::string address_by(int (*get)(int, sockaddr*, socklen_t*), const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  return get(socket.get(), generic, &size) == 0 ? text_of(generic) : "?";
}

}  // namespace

Descriptor accept_on(const Descriptor& listener) {
  Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) notice_death(socket);
  return socket;
}

// A machine's own name may resolve to a loopback address, where no other node reaches it: then on all networks.
TcpSocket listen_at(const std::string& host, int port) {
  const Addresses addresses = look_up(host, port);
  TcpSocket out{{}, EADDRNOTAVAIL, addresses.why};
  for (const addrinfo* each = addresses.list.get(); each != nullptr; each = each->ai_next) {
    if (!names_loopback(host) && names_loopback(text_of(each->ai_addr))) {
      out.error = EADDRNOTAVAIL;
      break;
    }
    Descriptor socket = open_socket(*each);
    const int error = socket ? listen_on(socket, each->ai_addr, each->ai_addrlen) : errno;
    if (error == 0) return {std::move(socket), 0, ""};
    out.error = error;
    out.text = errno_text(error);
    if (error == EADDRINUSE) return out;
  }
  if (out.error != EADDRNOTAVAIL) return out;
  sockaddr_in any{};  // of a service's name in front of this machine as well
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<uint16_t>(port));
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int error = listen_on(socket, reinterpret_cast<const sockaddr*>(&any), sizeof any);
  if (error != 0) return {{}, error, errno_text(error)};
  return {std::move(socket), 0, ""};
}

TcpSocket connect_to(const std::string& host, int port, std::chrono::milliseconds patience) {
  const Addresses addresses = look_up(host, port);
  TcpSocket out{{}, EHOSTUNREACH, addresses.why};
  for (const addrinfo* each = addresses.list.get(); each != nullptr; each = each->ai_next) {
    Descriptor socket = open_socket(*each);
    int error = connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      pollfd state{.fd = socket.get(), .events = POLLOUT, .revents = 0};
      socklen_t size = sizeof error;
      error = ETIMEDOUT;
      if (poll(&state, 1, static_cast<int>(patience.count())) == 1) {
        getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
    }
    if (error == 0) {
      notice_death(socket);
      return {std::move(socket), 0, ""};
    }
    out.error = error;
    out.text = errno_text(error);
  }
  return out;
}

int port_of(const Descriptor& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string address_of(const Descriptor& listener) { return address_by(getsockname, listener); }

std::string peer_address(const Descriptor& socket) { return address_by(getpeername, socket); }

bool is_this_machine(const std::string& host) {
  if (host == "localhost" || host == host_name()) return true;
  const Addresses addresses = look_up(host, 1);
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> own(all, freeifaddrs);
  for (const addrinfo* each = addresses.list.get(); each != nullptr; each = each->ai_next) {
    const std::string text = text_of(each->ai_addr);
    if (text.starts_with("127.")) return true;
    for (const ifaddrs* interface = own.get(); interface != nullptr; interface = interface->ifa_next) {
      const sockaddr* const address = interface->ifa_addr;
      if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) continue;
      if (text_of(address) == text) return true;
    }
  }
  return false;
}

}  // namespace lockstep::rendezvous
