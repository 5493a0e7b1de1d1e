#include "lockstep/rendezvous/place/address.h"

#include <charconv>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"

namespace lockstep::rendezvous {

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string tcp_address(const std::string& host, const std::string& port) {
  return host.find(':') == std::string::npos ? cat("tcp://", host, ':', port) : cat("tcp://[", host, "]:", port);
}

bool names_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

std::string derived_port(const std::string& job) {
  constexpr uint64_t kFirstPort = 20000, kPorts = 10000;
  return std::to_string(kFirstPort + std::stoull(sha256_hex(job).substr(0, 12), nullptr, 16) % kPorts);
}

Address parse_address(const std::string& address) {
  const auto mistake = [&](const char* what) {
    return ConfigError("rendezvous ", address, ": ", what, "; expected tcp://host:port or file:///path");
  };
  if (address.rfind("file:///", 0) == 0) {
    if (address.back() == '/') throw mistake("no file");
    return {.path = address.substr(7)};
  }
  if (address.rfind("tcp://", 0) != 0) throw mistake("unknown kind of address");
  const std::string rest = address.substr(6);
  const size_t colon = rest.rfind(':');
  if (colon == std::string::npos) throw mistake("no port");
  const auto port = parse_number(std::string_view(rest).substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) throw mistake("the port is no number from 1 to 65535");
  std::string host = rest.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty()) throw mistake("no host");
  if (!bracketed && host.find_first_of(":[]/") != std::string::npos) {
    throw mistake("the host can't be read (an IPv6 address goes in brackets)");
  }
  return {.host = host, .port = static_cast<uint16_t>(*port)};
}

}  // namespace lockstep::rendezvous
