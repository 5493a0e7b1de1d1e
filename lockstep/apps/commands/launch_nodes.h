// Which node this is, and where the nodes of `lockstep launch` meet.
#pragma once

#include "lockstep/apps/commands/launch_plan.h"

namespace lockstep::apps {

// Fills in the plan's handshake (with several nodes) and the layout's master. plan.nproc is known. Throws ConfigError.
void plan_nodes(const LaunchOptions& options, const LaunchMachine& machine, LaunchPlan& plan);

}  // namespace lockstep::apps
