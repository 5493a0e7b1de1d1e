#include "lockstep/data/read_batch.h"

#include "lockstep/data/read_sample.h"
#include "lockstep/data/sample_rows.h"

namespace lockstep::data {

Batch read_batch(const Dataset& dataset, std::span<const int64_t> indices, uint32_t epoch, uint64_t seed) {
  SampleRows rows(dataset.fields(), std::ssize(indices));
  ReadStats stats;
  int64_t row = 0;
  for (const int64_t index : indices) {
    const SampleRead sample{.index = index,
                            .draw = {.seed = seed, .epoch = epoch, .number = static_cast<uint64_t>(index)}};
    read_sample(dataset, sample, rows.row(row++), stats);
  }
  return rows.batch();
}

}  // namespace lockstep::data
