// The lines that launchers exchange in their handshake, over non-blocking sockets (rendezvous/place/tcp_sockets.h).
#pragma once

#include <chrono>
#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::launch {

// Reads up to the next newline what has come so far, and adds it to `line`. Returns false at the stream's end, and once
// `line` is longer than `most`.
bool read_line(const Descriptor& socket, std::string& line, size_t most);
inline bool is_whole(const std::string& line) { return line.ends_with('\n'); }
// Writes all, for at most `patience`; a reader that is gone or stands still misses it.
void send_line(const Descriptor& socket, const std::string& line, std::chrono::milliseconds patience);

}  // namespace lockstep::launch
