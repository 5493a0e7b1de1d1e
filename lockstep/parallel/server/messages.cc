#include "lockstep/parallel/server/messages.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::parallel {
namespace {

constexpr int kTick = 100;            // milliseconds between calls of on_wait
constexpr uint64_t kMostText = 4096;  // bytes

}  // namespace

Connection::Connection(Descriptor socket, OnWait on_wait)
    : socket_(std::move(socket)), on_wait_(std::move(on_wait)), peer_(rendezvous::peer_address(socket_)) {
  const int on = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  touch();
}

void Connection::touch() { moved_ns_ = monotonic_ns(); }

void Connection::close_for_all(const std::string& text) {
  const std::unique_lock lock(sending_, std::try_to_lock);
  if (lock && !text.empty()) {
    MessageHead head{.kind = MessageKind::kRefused};
    head.bytes = text.size();
    std::string message(reinterpret_cast<const char*>(&head), sizeof head);
    message += text;
    // Where the other end has no room for it, it misses it.
    (void)!::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  shutdown(socket_.get(), SHUT_RDWR);
}

void Connection::wait_for(short events) const {
  pollfd state{.fd = socket_.get(), .events = events, .revents = 0};
  while (poll(&state, 1, kTick) == 0) {
    if (on_wait_) on_wait_();
  }
}

void Connection::write(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
      bytes_ += static_cast<uint64_t>(sent);
      touch();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(POLLOUT);
    } else if (errno != EINTR) {
      throw ConnectionLost{errno_text(errno)};
    }
  }
}

void Connection::send(MessageHead head, std::span<const char> bytes, std::span<const char> more) {
  head.bytes = bytes.size() + more.size();
  const std::lock_guard lock(sending_);
  write({reinterpret_cast<const char*>(&head), sizeof head});
  write(bytes);
  write(more);
}

void Connection::receive_bytes(std::span<char> to) {
  while (!to.empty()) {
    const ssize_t got = recv(socket_.get(), to.data(), to.size(), 0);
    if (got > 0) {
      to = to.subspan(static_cast<size_t>(got));
      bytes_ += static_cast<uint64_t>(got);
      touch();
    } else if (got == 0) {
      throw ConnectionLost{"it closed the connection"};
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(POLLIN);
    } else if (errno != EINTR) {
      throw ConnectionLost{errno_text(errno)};
    }
  }
}

MessageHead Connection::receive() {
  MessageHead head;
  receive_bytes({reinterpret_cast<char*>(&head), sizeof head});
  if (head.magic != MessageHead::kMagic) throw ConnectionLost{"it speaks another protocol"};
  return head;
}

std::string Connection::receive_text(const MessageHead& head) {
  if (head.bytes > kMostText) throw ConnectionLost{"its message is too long"};
  std::string text(head.bytes, '\0');
  receive_bytes(bytes_of(text));
  return text;
}

std::optional<std::string> Connection::last_words() {
  on_wait_ = [] { throw ConnectionLost{"it has said nothing"}; };
  try {
    const MessageHead head = receive();
    if (head.kind == MessageKind::kRefused) return receive_text(head);
  } catch (const ConnectionLost&) {
  }
  return std::nullopt;
}

}  // namespace lockstep::parallel
