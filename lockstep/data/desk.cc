#include "lockstep/data/desk.h"

#include "lockstep/base/error.h"

namespace lockstep::data {

void throw_late(const std::deque<Desk>& desks, const Dataset& dataset, std::chrono::nanoseconds timeout) {
  int64_t slowest = -1, since = 0;
  for (const Desk& desk : desks) {
    const int64_t its_index = desk.index, its_since = desk.since;
    if (its_index < 0 || (slowest >= 0 && its_since >= since)) continue;
    slowest = its_index;
    since = its_since;
  }
  const double seconds = std::chrono::duration<double>(timeout).count();
  if (slowest < 0) throw IoError("loading data: a batch was not ready after ", seconds, " s");
  throw IoError("loading data: ", dataset.name_of(slowest), " has been read for ", seconds_since(since),
                " s; does the file system that the data lies on hang?");
}

}  // namespace lockstep::data
