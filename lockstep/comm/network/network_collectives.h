// The collectives over a network, each made of a few rounds of messages.
#pragma once

#include "lockstep/comm/call.h"
#include "lockstep/comm/network/exchange.h"

namespace lockstep::comm {

// Runs a collective, whose input and output are contiguous, to its end on the calling thread. Throws MeshError.
void run_collective(Exchange& exchange, const Call& call);

}  // namespace lockstep::comm
