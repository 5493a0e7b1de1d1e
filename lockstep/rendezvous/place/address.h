// The address of a rendezvous: tcp://host:port, tcp://[IPv6]:port or file:///path. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::rendezvous {

// The parts of an address.
struct Address {
  std::string host = {};  // a tcp:// address's host, an IPv6 address without its brackets; empty for file://
  uint16_t port = 0;
  std::string path = {};  // a file:// address's absolute path; empty for tcp://
};

// Parses an address. Throws ConfigError that says what is wrong with it.
Address parse_address(const std::string& address);

// "tcp://host:port", with brackets around an IPv6 address.
std::string tcp_address(const std::string& host, const std::string& port);

// Whether the host's name means this machine alone: localhost, 127.…, ::1. The name of a machine may also resolve to a
// loopback address (Debian's /etc/hosts has 127.0.1.1), but is meant for other machines too.
bool names_loopback(std::string_view host);

// A port from 20000 to 29999, derived from the job's name: the same on all ranks, and most likely another for other
// jobs.
std::string derived_port(const std::string& job);

// The decimal whole number that `text` is; nothing if it is anything else or out of range.
std::optional<int64_t> parse_number(std::string_view text);

}  // namespace lockstep::rendezvous
