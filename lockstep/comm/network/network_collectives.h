// The collectives over a network, each a few rounds of messages. Each runs a call to its end on the calling thread.
#pragma once

#include "lockstep/comm/call.h"
#include "lockstep/comm/network/exchange.h"

namespace lockstep::comm {

// Carries out a collective (no message), whose input and output are contiguous. Throws MeshError.
void run_collective(Exchange& exchange, const Call& call);

}  // namespace lockstep::comm
