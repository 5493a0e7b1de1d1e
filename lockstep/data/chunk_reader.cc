#include "lockstep/data/chunk_reader.h"

#include <algorithm>
#include <memory>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

constexpr int64_t kAheadBytes = int64_t{256} << 20;
constexpr int64_t kMostAhead = 3;  // chunks

std::vector<SampleRead> samples_between(int64_t first, int64_t last) {
  std::vector<SampleRead> samples;
  for (int64_t index = first; index < last; ++index) {
    samples.push_back({.index = index, .draw = {.number = static_cast<uint64_t>(index)}});
  }
  return samples;
}

std::shared_ptr<const Dataset> owned_if_possible(const Dataset& dataset) {
  auto owned = dataset.weak_from_this().lock();
  return owned != nullptr ? owned : std::shared_ptr<const Dataset>(std::shared_ptr<void>(), &dataset);
}

size_t chunks_ahead(const Dataset& dataset, int64_t chunk) {
  const int64_t bytes = std::max<int64_t>(1, bytes_of(dataset.fields(), chunk));
  return static_cast<size_t>(std::clamp<int64_t>(kAheadBytes / bytes, 1, kMostAhead));
}

}  // namespace

int64_t chunks_of(int64_t samples, int64_t chunk) {
  if (chunk < 1) throw ConfigError("an evaluation in chunks of ", chunk, " samples; expected 1 or more");
  return samples == 0 ? 0 : (samples - 1) / chunk + 1;
}

ChunkReader::ChunkReader(const Dataset& dataset, int64_t first, int64_t last, int64_t chunk, int workers,
                         bool leaves_out)
    : queue_(owned_if_possible(dataset),
             [first, last, chunk = std::min(chunk, last - first)](uint64_t unit) {
               const int64_t begin = first + static_cast<int64_t>(unit) * chunk;
               return samples_between(begin, std::min(last, begin + chunk));
             },
             std::min(chunk, last - first), 0,
             {.workers = workers,
              .ahead = chunks_ahead(dataset, std::min(chunk, last - first)),
              .end = static_cast<uint64_t>(chunks_of(last - first, chunk)),
              .substitutes = leaves_out ? Substitutes::none() : nullptr}) {}

Batch ChunkReader::next() {
  SampleQueue::Unit unit = queue_.next();
  bad_.insert(bad_.end(), unit.bad.begin(), unit.bad.end());
  return std::move(unit.batch);
}

}  // namespace lockstep::data
