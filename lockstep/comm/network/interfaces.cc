#include "lockstep/comm/network/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/shared_memory.h"

namespace lockstep::comm {
namespace {

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = address->sa_family == AF_INET
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                          : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return inet_ntop(address->sa_family, bytes, text.data(), text.size()) != nullptr ? text.data() : "";
}

// Every address of every interface that is up.
std::vector<NetworkInterface> all_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<NetworkInterface> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family || (each->ifa_flags & IFF_UP) == 0) continue;
      found.push_back({each->ifa_name, text_of(each->ifa_addr), (each->ifa_flags & IFF_LOOPBACK) != 0});
    }
  }
  return found;
}

// The local address from which packets to the host would leave. Sends nothing.
std::string address_towards(const std::string& host) {
  constexpr const char* kAnyPort = "9";
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), kAnyPort, &hints, &list) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    const Descriptor fd(socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage local{};
    socklen_t length = sizeof local;
    if (fd && connect(fd.get(), each->ai_addr, each->ai_addrlen) == 0 &&
        getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &length) == 0) {
      return text_of(reinterpret_cast<const sockaddr*>(&local));
    }
  }
  return "";
}

std::string names_of(const std::vector<NetworkInterface>& interfaces) {
  std::string text;
  for (const auto& each : interfaces) text += cat(text.empty() ? "" : ", ", each.name, " (", each.address, ')');
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<NetworkInterface> network_interfaces() {
  std::vector<NetworkInterface> unique;
  for (auto& each : all_addresses()) {
    const auto same = [&](const NetworkInterface& other) { return other.name == each.name; };
    if (std::none_of(unique.begin(), unique.end(), same)) unique.push_back(std::move(each));
  }
  return unique;
}

std::vector<NetworkInterface> choose_interfaces(const std::string& names, const std::string& peer) {
  const std::vector<NetworkInterface> known = network_interfaces();
  std::vector<NetworkInterface> chosen;
  if (names.empty()) {
    const std::string address = address_towards(peer);
    for (const auto& each : all_addresses()) {
      if (each.address == address) return {each};
    }
    throw ConfigError("no network interface of this machine reaches ", peer,
                      "; name one with --interface: ", names_of(known));
  }
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& each) { return each.name == name; });
    if (found == known.end()) {
      throw ConfigError("--interface ", name, ": this machine has no such interface that is up; it has ",
                        names_of(known));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

}  // namespace lockstep::comm
