// Packets with file descriptors between processes of one machine, over abstract Unix sockets. These have a name but no
// file, so processes that die leave nothing behind.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"

namespace lockstep {

// The process at the other end of a connection.
struct Credentials {
  pid_t pid = 0;  // 0: the process is in a PID namespace that this process can't see
  uid_t uid = 0;
};

// A packet, received with the same bounds with which it was sent. No bytes mean that the peer has closed the connection
// or died.
struct Packet {
  std::string bytes;
  std::vector<Descriptor> descriptors;
};

// Opens a socket that listens under `name` (at most 100 bytes) in this network namespace. Throws IoError.
Descriptor listen_abstract(const std::string& name);

// Connects to the socket that listens under `name`; an empty descriptor if there is none.
Descriptor connect_abstract(const std::string& name);

// Accepts the next pending connection, which does not block; an empty descriptor if none is pending.
Descriptor accept_next(int listener);

// The peer's credentials, from the kernel. Throws IoError.
Credentials peer_credentials(int connection);

// Sends a packet with at most 250 descriptors. False if the peer is gone.
bool send_packet(int connection, const std::string& bytes, const std::vector<int>& descriptors = {});

// The next packet, cut off after `most_bytes`; nothing if none has come yet. Throws IoError if its descriptors are more
// than this process may open.
std::optional<Packet> receive_packet(int connection, size_t most_bytes);

}  // namespace lockstep
