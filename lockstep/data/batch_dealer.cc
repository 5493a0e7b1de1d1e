#include "lockstep/data/batch_dealer.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::data {

BatchDealer::BatchDealer(BatchDealerOptions options) : options_(options) {
  if (options.samples < 0) throw ConfigError("BatchDealer: ", options.samples, " samples");
  if (options.batch_size < 1) throw ConfigError("BatchDealer: batches of ", options.batch_size, " samples");
  if (options.rank < 0 || options.rank >= options.ranks) {
    throw ConfigError("BatchDealer: rank ", options.rank, " of ", options.ranks);
  }
  rounds_ = steps_of_epoch(options.samples, options.batch_size, options.drop_last) / options.ranks;
}

Range BatchDealer::batch(int64_t number) const {
  if (number < 0 || number >= rounds_) throw BugError("batch ", number, " of ", rounds_, " was asked of a dealer");
  const int64_t first = (number * options_.ranks + options_.rank) * options_.batch_size;
  return {.first = first, .count = std::min(options_.batch_size, options_.samples - first)};
}

}  // namespace lockstep::data
