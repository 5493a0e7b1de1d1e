// The shards of a part, filled one after the other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/datasets/options/pack_options.h"
#include "lockstep/datasets/packed/shard_writer.h"
#include "lockstep/datasets/packing/recoder.h"

namespace lockstep::datasets {

// Which shard a sample belongs to depends on the samples alone. One thread.
class ShardRow {
 public:
  // `samples` are to come, in options.shards shards of as many positions each, but for parts of fewer samples; or,
  // if that is unset, in shards of options.shard_size.
  ShardRow(std::string folder, const PackOptions& options, int64_t samples, std::vector<std::string> class_names);

  // Adds the sample at `position` of [0, samples); positions ascend, and may be left out. Throws as ShardWriter does.
  void add(int64_t position, const PackedSample& sample);
  uint64_t bytes() const { return finished_bytes_ + (writer_ ? writer_->bytes() : 0); }  // so far

  // Writes the rest; returns all shards.
  std::vector<ShardFile> finish();

 private:
  bool is_full(int64_t position, const PackedSample& sample) const;
  void close();

  std::string folder_;
  const PackOptions& options_;
  int64_t samples_;
  std::vector<std::string> class_names_;
  std::unique_ptr<ShardWriter> writer_;
  std::vector<ShardFile> shards_;
  uint64_t finished_bytes_ = 0;
};

}  // namespace lockstep::datasets
