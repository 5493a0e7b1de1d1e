// Packets and file descriptors between processes of one machine, over abstract Unix sockets: these have a name but no
// file, so nothing is left behind by processes that die.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"

namespace lockstep::rendezvous {

struct Credentials {
  pid_t pid = 0;  // 0: in a PID namespace that is not seen from here
  uid_t uid = 0;
};

// Packets keep their bounds; a packet of no bytes means that the other side has closed or died.
struct Packet {
  std::string bytes;
  std::vector<Descriptor> descriptors;
};

// A socket that listens under `name` (at most 100 bytes), in this network namespace. Throws IoError.
Descriptor listen_abstract(const std::string& name);

// A connection to whoever listens under `name`; none if nobody does.
Descriptor connect_abstract(const std::string& name);

// The next connection that waits at a listening socket; none if none does. The connection does not block.
Descriptor accept_next(int listener);

// What the kernel says of the process at the other end. Throws IoError.
Credentials peer_credentials(int connection);

// Whether the packet was sent; false if the other side is gone. At most 250 descriptors.
bool send_packet(int connection, const std::string& bytes, const std::vector<int>& descriptors = {});

// The next packet of at most `most_bytes` (more are cut off); nothing if none has come yet. Throws IoError if its
// descriptors were more than this process may open.
std::optional<Packet> receive_packet(int connection, size_t most_bytes);

}  // namespace lockstep::rendezvous
