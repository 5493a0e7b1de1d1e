// A launch whose nodes meet at etcd, and may come and go.
#pragma once

#include "lockstep/apps/commands/launch_plan.h"
#include "lockstep/launch/run_spec.h"

namespace lockstep::front {

// Runs this node's ranks in every epoch that it takes part in, until the run has ended. `spec` is the launch on one
// node. Returns the run's exit code.
int launch_elastic(const apps::LaunchPlan& plan, const launch::RunSpec& spec);

}  // namespace lockstep::front
