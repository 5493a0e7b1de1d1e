// The loader of a rank's own lanes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lockstep/base/env.h"
#include "lockstep/data/loader.h"
#include "lockstep/loop/board_watch.h"
#include "lockstep/loop/skip_list.h"
#include "lockstep/parallel/threads.h"
#include "lockstep/world/world.h"

namespace lockstep::loop {

struct LoadOptions {
  std::optional<int> workers = {};  // threads that read ahead; unset: as data::usual_workers() has it
  bool keep_threads = false;        // libtorch's threads stay as they are: for networks wrapped with .keep_threads
  std::shared_ptr<const data::BatchTransform> transform = nullptr;  // of each lane's batch, such as data::mix()
  // So many samples that can't be read are passed over, over all ranks: another one takes a bad one's place, the same
  // at any number of ranks. next() is then a collective. No less than a resumed loop has passed over. 0: the first one
  // is next()'s error.
  int64_t skip_bad = 0;
};

// Returns a loader of this rank's share of the lanes; options.dataset_size is the data set's. Proposes libtorch's
// threads by the lanes (threads.h), so that an evaluation before the first step has a number that does not depend on
// the ranks'; of several loaders the first one's, until run() has its own. The world outlives the loader. Throws
// ConfigError for lanes that the world's ranks can't share, DataError for an empty data set.
inline data::Loader make_loader(const World& world, const std::shared_ptr<const data::Dataset>& dataset,
                                data::SamplerOptions options, const LoadOptions& load = {}) {
  options.dataset_size = dataset->size();
  const World::Lanes own = world.own_lanes(options.lanes);
  if (!load.keep_threads) parallel::propose_threads(options.lanes);
  return data::Loader(
      dataset, data::LaneSampler(options),
      {.first_lane = own.first,
       .last_lane = own.last,
       .workers = load.workers.value_or(data::usual_workers(*dataset, usable_cores(), world.place().local_size)),
       .transform = load.transform,
       .skipped = skip_list(world, load.skip_bad),
       .watch = board_watch(world.self())});
}

}  // namespace lockstep::loop
