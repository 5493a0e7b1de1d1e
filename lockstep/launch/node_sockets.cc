#include "lockstep/launch/node_sockets.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "lockstep/base/clock.h"

namespace lockstep::launch {

bool read_line(const Descriptor& socket, std::string& line, size_t most) {
  char byte = 0;
  while (!is_whole(line) && line.size() <= most) {
    const ssize_t got = recv(socket.get(), &byte, 1, 0);
    if (got == 1) {
      line += byte;
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
  }
  return line.size() <= most;
}

void send_line(const Descriptor& socket, const std::string& line, std::chrono::milliseconds patience) {
  const Deadline deadline(patience);
  for (size_t at = 0; at < line.size() && !deadline.passed();) {
    const ssize_t sent = send(socket.get(), line.data() + at, line.size() - at, MSG_NOSIGNAL);
    if (sent > 0) {
      at += static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      pollfd state{.fd = socket.get(), .events = POLLOUT, .revents = 0};
      poll(&state, 1, static_cast<int>(deadline.left_ms().count()));
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace lockstep::launch
