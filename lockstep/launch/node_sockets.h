// TCP sockets of the launchers' handshake: plain, non-blocking, a line at a time.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// A socket, or why there is none.
struct NodeSocket {
  Descriptor descriptor;
  int error = 0;     // errno
  std::string text;  // for people
};

// Listens at `host`'s address, or at all of this machine where it has no such address, or where others can't reach it.
NodeSocket listen_at(const std::string& host, int port);
// Takes the next connection; none if none waits. Does not block.
Descriptor accept_on(const Descriptor& listener);
// Connects within `patience`.
NodeSocket connect_to(const std::string& host, int port, std::chrono::milliseconds patience);
// The address at the other end.
std::string peer_address(const Descriptor& socket);

// Reads up to the next newline what has come so far, and adds it to `line`. Returns false at the stream's end, and once
// `line` is longer than `most`.
bool read_line(const Descriptor& socket, std::string& line, size_t most);
inline bool is_whole(const std::string& line) { return line.ends_with('\n'); }
// Writes all, for at most `patience`; a reader that is gone or stands still misses it.
void send_line(const Descriptor& socket, const std::string& line, std::chrono::milliseconds patience);

}  // namespace lockstep::launch
