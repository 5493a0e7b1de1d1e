#include "lockstep/base/descriptor_passing.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr size_t kMostDescriptors = 250;  // the kernel passes 253 at a time

struct Address {
  explicit Address(const std::string& name) {
    if (name.empty() || name.size() > 100) throw BugError("abstract socket: a name of ", name.size(), " bytes");
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // after a NUL: not in the file system
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t length = 0;
};

Descriptor new_socket() {
  Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw IoError("Unix socket: ", errno_text(errno));
  return fd;
}

}  // namespace

Descriptor listen_abstract(const std::string& name) {
  const Address address(name);
  Descriptor fd = new_socket();
  if (bind(fd.get(), address.get(), address.length) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    throw IoError("abstract socket @", name, ": ", errno_text(errno));
  }
  return fd;
}

Descriptor connect_abstract(const std::string& name) {
  const Address address(name);
  Descriptor fd = new_socket();
  return connect(fd.get(), address.get(), address.length) == 0 ? std::move(fd) : Descriptor();
}

Descriptor accept_next(int listener) {
  return Descriptor(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Credentials peer_credentials(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    throw IoError("Unix socket: no credentials of the peer: ", errno_text(errno));
  }
  return {.pid = peer.pid, .uid = peer.uid};
}

bool send_packet(int connection, const std::string& bytes, const std::vector<int>& descriptors) {
  if (descriptors.size() > kMostDescriptors) throw BugError("send_packet: ", descriptors.size(), " descriptors");
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  const size_t length = descriptors.size() * sizeof(int);
  std::vector<std::byte> control(descriptors.empty() ? 0 : CMSG_SPACE(length));
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(length);
    std::memcpy(CMSG_DATA(header), descriptors.data(), length);
  }
  ssize_t sent;
  do {
    sent = sendmsg(connection, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

std::optional<Packet> receive_packet(int connection, size_t most_bytes) {
  Packet packet;
  packet.bytes.resize(most_bytes);
  iovec data{packet.bytes.data(), packet.bytes.size()};
  std::vector<std::byte> control(CMSG_SPACE(kMostDescriptors * sizeof(int)));
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  // If the peer closed before it had read all of this side's packets, the kernel first reports ECONNRESET, once, and
  // then delivers the peer's last packets.
  ssize_t received;
  do {
    received = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && (errno == EINTR || errno == ECONNRESET));
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  packet.bytes.resize(static_cast<size_t>(std::max<ssize_t>(received, 0)));  // an error, too, means that it is gone
  for (cmsghdr* header = received < 0 ? nullptr : CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= header->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
      packet.descriptors.emplace_back(fd);
    }
  }
  if (received >= 0 && (message.msg_flags & MSG_CTRUNC) != 0) {
    throw IoError("Unix socket: not all descriptors could be taken; raise the limit on open files (ulimit -n)");
  }
  return packet;
}

}  // namespace lockstep
