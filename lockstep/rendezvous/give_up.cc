#include "lockstep/rendezvous/give_up.h"

#include "lockstep/base/clock.h"
#include "lockstep/comm/quiet_c10d.h"
#include "lockstep/rendezvous/store.h"

namespace lockstep::rendezvous {

void give_up(const Place& place, const Error& error) {
  if (place.size == 1 || place.launcher == "lockstep") return;
  const comm::QuietC10d quiet;
  const Deadline deadline(kForTheLate);
  try {
    Store store(place, deadline);
    store.give_up(error, deadline);
    if (place.rank == 0) store.close_when_all_know(deadline);
  } catch (const Error&) {  // the rank's own error is what counts
  }
}

}  // namespace lockstep::rendezvous
