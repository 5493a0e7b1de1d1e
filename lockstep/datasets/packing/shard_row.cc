#include "lockstep/datasets/packing/shard_row.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace lockstep::datasets {

ShardRow::ShardRow(std::string folder, const PackOptions& options, int64_t samples,
                   std::vector<std::string> class_names)
    : folder_(std::move(folder)), options_(options), samples_(samples), class_names_(std::move(class_names)) {}

bool ShardRow::is_full(int64_t position, const PackedSample& sample) const {
  if (options_.shards) return position * std::min<int64_t>(*options_.shards, samples_) / samples_ > std::ssize(shards_);
  const uint64_t most = static_cast<uint64_t>(options_.shard_size) << 20;
  return writer_->bytes() > kShardAlignment && writer_->bytes() + sample.image.size() + sample.mask.size() > most;
}

void ShardRow::add(int64_t position, const PackedSample& sample) {
  while (!writer_ || is_full(position, sample)) {
    if (writer_) close();
    char name[32];
    std::snprintf(name, sizeof name, "shard-%05zu.lks", shards_.size());
    writer_ = std::make_unique<ShardWriter>(folder_, name);
  }
  writer_->add(sample.record(), static_cast<uint64_t>(sample.source), sample.name);
}

void ShardRow::close() {
  shards_.push_back(writer_->finish(class_names_));
  finished_bytes_ += shards_.back().bytes;
  writer_.reset();
}

std::vector<ShardFile> ShardRow::finish() {
  if (writer_) close();
  return std::move(shards_);
}

}  // namespace lockstep::datasets
