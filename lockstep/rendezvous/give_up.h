// A rank that finds, before the rendezvous, that it can't take part, and that does not let the others wait for it.
#pragma once

#include <chrono>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/environment.h"

namespace lockstep::rendezvous {

// How long rank 0 serves the store for those who come late, after a rank has given up.
constexpr std::chrono::seconds kForTheLate{30};

// Tells the other ranks, which meet or are about to, why this one takes no part: they throw the error as "rank 2: …",
// in this launch for good, so this process must end. On rank 0 it takes until all others know it, and else until rank 0
// is there; kForTheLate at most. What goes wrong with that is passed over. Does nothing where our launcher, which tells
// the others, has started this rank, or where there are no others.
void give_up(const Place& place, const Error& error);

}  // namespace lockstep::rendezvous
