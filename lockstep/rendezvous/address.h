// The address at which ranks meet: tcp://host:port, tcp://[IPv6]:port or file:///path. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::rendezvous {

// An address, taken apart.
struct Address {
  std::string host = {};  // of tcp://; without the brackets of an IPv6 address
  uint16_t port = 0;
  std::string path = {};  // of file://, absolute
};

// Throws ConfigError that says what is wrong with the address.
Address parse_address(const std::string& address);

std::string tcp_address(const std::string& host, const std::string& port);

// Whether the host is named as this machine alone: localhost, 127.…, ::1. A machine's own name may lead to a loopback
// address too (Debian's /etc/hosts has 127.0.1.1), and yet be meant for others.
bool names_loopback(std::string_view host);

// A port from 20000 to 29999 that all ranks of a job come to, and other jobs most likely not.
std::string derived_port(const std::string& job);

// A decimal whole number and nothing else; nothing if it is none, or out of range.
std::optional<int64_t> parse_number(std::string_view text);

}  // namespace lockstep::rendezvous
