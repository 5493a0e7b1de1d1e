#include "network_namespaces.h"

#include <unistd.h>

#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::e2e {
namespace {

Words split(const std::string& line) {
  Words words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Why a namespace can't be made here, and then these arguments of `ip` in it; empty if they can.
std::string why_not(const std::string& then) {
  if (ip_path().empty()) return "no ip program (Debian: iproute2)";
  if (geteuid() != 0) return "only root makes network namespaces";
  try {
    Namespaces namespaces;
    const std::string name = namespaces.add(cat("lockstep-try-", getpid()));
    if (!then.empty()) ip(cat("-n ", name, ' ', then));
  } catch (const IoError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

std::string ip_path() {
  for (const char* path : {"/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return "";
}

void ip(const std::string& arguments) {
  const Result result = Program({.command = Words{ip_path()} + split(arguments)}).wait();
  if (result.exit_code != 0) throw IoError("ip ", arguments, ": ", result.err);
}

std::string why_no_namespaces() { return why_not(""); }
std::string why_no_hosts() { return why_not("link add name br0 type bridge"); }

std::string Namespaces::add(const std::string& name) {
  ip("netns add " + name);
  return names_.emplace_back(name);
}

Namespaces::~Namespaces() {
  for (const auto& name : names_) {
    try {
      ip("netns del " + name);
    } catch (const std::exception&) {  // gone, or held by a process that ends
    }
  }
}

Hosts::Hosts(int count) {
  static int made = 0;
  const std::string id = cat("lockstep-", getpid(), '-', made++, 'h');
  switch_ = namespaces_.add(id + 's');
  ip(cat("-n ", switch_, " link add name br0 type bridge"));
  ip(cat("-n ", switch_, " link set br0 up"));
  for (int host = 0; host < count; ++host) {
    const std::string name = names_.emplace_back(namespaces_.add(cat(id, host)));
    ip(cat("link add ", port_of(host), " netns ", switch_, " type veth peer name eth0 netns ", name));
    ip(cat("-n ", switch_, " link set ", port_of(host), " master br0 up"));
    ip(cat("-n ", name, " addr add ", address(host), "/24 dev eth0"));
    ip(cat("-n ", name, " link set eth0 up"));
    ip(cat("-n ", name, " link set lo up"));
  }
}

std::string Hosts::address(int host) const { return cat("10.77.43.", host + 1); }
std::string Hosts::port_of(int host) const { return cat("port", host); }

std::unique_ptr<Program> Hosts::start(int host, const Words& command) const {
  return std::make_unique<Program>(
      Program::Options{.command = Words{ip_path(), "netns", "exec", names_.at(static_cast<size_t>(host))} + command});
}

void Hosts::unplug(int host) const { ip(cat("-n ", switch_, " link set ", port_of(host), " down")); }
void Hosts::plug(int host) const { ip(cat("-n ", switch_, " link set ", port_of(host), " up")); }

}  // namespace lockstep::e2e
