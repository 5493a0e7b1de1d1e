// Two hosts on one machine: network namespaces, joined by a virtual cable, on which ranks run as on two machines.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "link.h"
#include "network_namespaces.h"
#include "program.h"
#include "runs.h"

namespace lockstep::e2e {

class TwoHosts {
 public:
  // Joined by a veth pair, or by a Link with such options. Throws IoError.
  explicit TwoHosts(std::optional<Link::Options> link = std::nullopt);

  // Starts lockstep-worker with `words` as `rank` of four, two on each host, without a launcher.
  std::unique_ptr<Program> start(int rank, const Words& words, const Words& environment = {}) const;
  // All four.
  std::vector<std::unique_ptr<Program>> start_all(const Words& words) const;

  void cut() { link_->cut(); }  // all packets are lost, in silence
  void reset() const;           // every connection between the hosts is reset
  const std::string& name(int host) const { return names_[host]; }

 private:
  Namespaces namespaces_;
  std::string names_[2];
  std::string port_;
  std::unique_ptr<Link> link_;
};

}  // namespace lockstep::e2e
