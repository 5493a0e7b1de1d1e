// The protocol of one message between two members: a header, the receiver's answer whether it expects that, and the
// data.
#pragma once

#include "lockstep/comm/call.h"
#include "lockstep/comm/network/exchange.h"

namespace lockstep::comm {

// Carries out a send or receive. Throws MeshError, and DesyncError on both sides if dtype or size differ.
void run_message(Exchange& exchange, const Call& call);

}  // namespace lockstep::comm
