// TCP sockets of processes that are not yet, or not at all, ranks of one world: non-blocking, closed on exec.
#pragma once

#include <chrono>
#include <string>

#include "lockstep/base/shared_memory.h"

namespace lockstep::rendezvous {

// A socket, or why there is none.
struct TcpSocket {
  Descriptor descriptor;
  int error = 0;     // errno
  std::string text;  // for people
};

// Listens at `host`'s address, or at all of this machine where it has no such address, or where others can't reach it.
// Port 0: one that is free.
TcpSocket listen_at(const std::string& host, int port);
// The port and the address at which a socket listens.
int port_of(const Descriptor& listener);
std::string address_of(const Descriptor& listener);
// Takes the next connection; none if none waits. Does not block. A machine at the other end that goes away without a
// word is noticed within half a minute.
Descriptor accept_on(const Descriptor& listener);
// Connects within `patience`; the end of the other machine is noticed as above.
TcpSocket connect_to(const std::string& host, int port, std::chrono::milliseconds patience);
// The address at the other end.
std::string peer_address(const Descriptor& socket);

// Whether the host's name or address means this machine.
bool is_this_machine(const std::string& host);

}  // namespace lockstep::rendezvous
