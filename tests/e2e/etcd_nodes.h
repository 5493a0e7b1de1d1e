// Launchers that meet at an etcd, each a node, and a run that is long enough to be disturbed.
#pragma once

#include <memory>
#include <string>

#include "lockstep/launch/etcd/testing/etcd_server.h"
#include "runs.h"

namespace lockstep::e2e {

struct EtcdNodes {
  // `lockstep launch` with `flags` and `program`, in `folder`.
  std::unique_ptr<Program> start(const Words& flags, const Words& program, const std::string& folder = ".") const {
    return std::make_unique<Program>(
        lockstep_command(Words{"launch", "--rdzv-backend=etcd", "--rdzv-endpoint", etcd.endpoint(), "--rdzv-id=r",
                               "--rdzv-conf=last_call_timeout=2,join_timeout=120", "--local-addr=127.0.0.1"} +
                             flags + program,
                         folder));
  }

  testing_support::EtcdServer etcd;
};

// lockstep-worker's words for a run of so many steps of four lanes, which is evaluated at its end alone.
constexpr int kDisturbedSteps = 400;
Words disturbed_run(const std::string& out, const Words& more);
// outcome_of() of that run, undisturbed; made at the first call.
const nlohmann::json& undisturbed_outcome();

}  // namespace lockstep::e2e
