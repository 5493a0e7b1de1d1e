#include "lockstep/doctor/machine.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "lockstep/base/error.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/base/topology.h"

namespace lockstep::doctor {
namespace {

// The address as text; "" for another family than IP.
std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::vector<Interface> find_interfaces() {
  std::vector<Interface> out;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return out;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if ((each->ifa_flags & IFF_UP) == 0) continue;
    auto known = std::find_if(out.begin(), out.end(), [&](const Interface& one) { return one.name == each->ifa_name; });
    if (known == out.end()) known = out.insert(out.end(), {.name = each->ifa_name, .addresses = {}});
    const std::string address = text_of(each->ifa_addr);
    if (!address.empty()) known->addresses.push_back(address);
  }
  freeifaddrs(all);
  return out;
}

std::string try_memfd() {
  try {
    constexpr size_t kBytes = 4096;
    const Descriptor memory = create_memfd("lockstep-doctor", kBytes);
    *Mapping(memory.get()).at<int>(0) = 7;
    return *Mapping(memory.get()).at<int>(0) == 7 ? "" : "two mappings of one memory differ";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string describe_topology() {
  try {
    return Topology::of_this_machine().describe();
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

Machine look_at_machine() {
  Machine out;
  out.cpu = detect_cpu_features();
  out.cores = usable_cores();
  out.topology = describe_topology();
  out.memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  out.available = available_memory();
  out.limits = cgroup_limits();
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0) out.dev_shm = uint64_t{shm.f_bavail} * shm.f_frsize;
  out.memfd = try_memfd();
  out.interfaces = find_interfaces();
  return out;
}

std::string feature_names(const CpuFeatures& cpu) {
  std::string out;
  const auto add = [&out](bool has, const char* name) {
    if (has) out += cat(out.empty() ? "" : ", ", name);
  };
  add(cpu.amx_bf16, "AMX-BF16");
  add(cpu.avx512_bf16, "AVX512-BF16");
  add(cpu.avx512_fp16, "AVX512-FP16");
  add(cpu.avx512, "AVX-512");
  return out.empty() ? "none" : out;
}

}  // namespace lockstep::doctor
