#include "two_hosts.h"

#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::e2e {
namespace {

constexpr const char* kAddresses[2] = {"10.77.41.1", "10.77.41.2"};
constexpr const char* kDevice = "lsnet0";

}  // namespace

TwoHosts::TwoHosts(std::optional<Link::Options> link) {
  static int count = 0;
  const std::string id = std::to_string(getpid()) + "-" + std::to_string(count++);
  port_ = std::to_string(23000 + count % 1000);
  for (const int host : {0, 1}) {
    names_[host] = namespaces_.add("lockstep-" + id + (host == 0 ? "a" : "b"));
  }
  if (link) {
    link_ = std::make_unique<Link>(names_[0], names_[1], kDevice, *link);
  } else {
    ip("link add " + std::string(kDevice) + " netns " + names_[0] + " type veth peer name " + kDevice + " netns " +
       names_[1]);
  }
  for (const int host : {0, 1}) {
    const std::string within = "-n " + names_[host];
    ip(within + " addr add " + kAddresses[host] + "/24 dev " + kDevice);
    ip(within + " link set " + kDevice + " up");
    ip(within + " link set lo up");
  }
}

std::unique_ptr<Program> TwoHosts::start(int rank, const Words& words, const Words& environment) const {
  const Words command = Words{ip_path(), "netns", "exec", names_[rank / 2], "/usr/bin/env"} + environment +
                        Words{"RANK=" + std::to_string(rank),
                              "WORLD_SIZE=4",
                              "LOCAL_RANK=" + std::to_string(rank % 2),
                              "LOCAL_WORLD_SIZE=2",
                              "MASTER_ADDR=" + std::string(kAddresses[0]),
                              "MASTER_PORT=" + port_,
                              bin_folder() + "/lockstep-worker"} +
                        words;
  return std::make_unique<Program>(Program::Options{.command = command});
}

std::vector<std::unique_ptr<Program>> TwoHosts::start_all(const Words& words) const {
  std::vector<std::unique_ptr<Program>> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.push_back(start(rank, words));
  return ranks;
}

void TwoHosts::reset() const {
  const Result result =
      Program({.command = {ip_path(), "netns", "exec", names_[0], "ss", "-K", "dst", kAddresses[1]}}).wait();
  if (result.exit_code != 0) throw IoError("ss -K: ", result.err);
}

}  // namespace lockstep::e2e
