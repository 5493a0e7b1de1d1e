// The loader of a rank's own lanes.
#pragma once

#include <memory>
#include <optional>

#include "lockstep/base/env.h"
#include "lockstep/data/loader.h"
#include "lockstep/parallel/threads.h"
#include "lockstep/world/world.h"

namespace lockstep::loop {

// Returns a loader of this rank's share of the lanes; options.dataset_size is the data set's. `workers`: threads that
// read ahead; unset: as data::usual_workers() has it. Proposes libtorch's threads by the lanes (threads.h), so that an
// evaluation before the first step has a number that does not depend on the ranks'; of several loaders the first one's,
// until run() has its own. `keep_threads` leaves the number as it is: for networks that are wrapped with .keep_threads.
// Throws ConfigError for lanes that the world's ranks can't share, DataError for an empty data set.
inline data::Loader make_loader(const World& world, const std::shared_ptr<const data::Dataset>& dataset,
                                data::SamplerOptions options, std::optional<int> workers = {},
                                bool keep_threads = false) {
  options.dataset_size = dataset->size();
  const World::Lanes own = world.own_lanes(options.lanes);
  if (!keep_threads) parallel::propose_threads(options.lanes);
  return data::Loader(
      dataset, data::LaneSampler(options),
      {.first_lane = own.first,
       .last_lane = own.last,
       .workers = workers.value_or(data::usual_workers(*dataset, usable_cores(), world.place().local_size))});
}

}  // namespace lockstep::loop
