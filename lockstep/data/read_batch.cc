#include "lockstep/data/read_batch.h"

#include <vector>

#include "lockstep/data/sample_rows.h"

namespace lockstep::data {

Batch read_samples(const Dataset& dataset, std::span<const SampleRead> samples) {
  SampleRows rows(dataset.fields(), std::ssize(samples));
  ReadStats stats;
  int64_t row = 0;
  for (const SampleRead& sample : samples) read_sample(dataset, sample, rows.row(row++), stats);
  return rows.batch();
}

Batch read_batch(const Dataset& dataset, std::span<const int64_t> indices, uint32_t epoch, uint64_t seed) {
  std::vector<SampleRead> samples;
  for (const int64_t index : indices) {
    samples.push_back({.index = index, .draw = {.seed = seed, .epoch = epoch, .number = static_cast<uint64_t>(index)}});
  }
  return read_samples(dataset, samples);
}

}  // namespace lockstep::data
