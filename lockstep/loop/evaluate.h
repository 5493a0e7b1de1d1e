// Exact evaluation for a loop of one's own: metrics over all samples of a data set, each counted once, equal at any
// number of ranks.
//
//   const auto found = loop::evaluate(ddp, *valid, [&](const data::Batch& batch) -> loop::Sums {
//     const auto output = net->forward(batch.data());
//     return {{"loss", at::cross_entropy_loss(output, batch.target(), {}, at::Reduction::Sum).item<double>()},
//             {"correct", output.argmax(1).eq(batch.target()).sum().item<double>()}};
//   });
//   found.mean("correct")  // the accuracy
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/data/dataset.h"
#include "lockstep/data/skipped_samples.h"
#include "lockstep/parallel/distributed_data_parallel.h"
#include "lockstep/world/world.h"

namespace lockstep::loop {

// Sums over samples by name, not means: batches are of unequal sizes.
using Sums = std::map<std::string, double>;
using SumsOf = std::function<Sums(const data::Batch& batch)>;

struct Measured {
  Sums sums;
  int64_t samples = 0;  // that were measured

  // Throws ConfigError that lists the names for one that is not there.
  double sum(const std::string& name) const;
  double mean(const std::string& name) const { return sum(name) / static_cast<double>(samples); }
};

struct EvaluateOptions {
  int64_t chunk = 256;  // samples in a batch; the results' bits depend on it
  c10::Device device{c10::kCPU};
  // Of the loop, by which libtorch's threads are proposed (threads.h) if neither make_loader() nor run() has set them
  // before. 0: an evaluation has one thread then.
  int lanes = 0;
  bool keep_threads = false;        // libtorch's threads stay as they are
  bool in_training_mode = false;    // wrapped networks may be in training mode, and change their buffers
  std::optional<int> workers = {};  // threads that read ahead; unset: as data::usual_workers() has it
  // Where samples that can't be read are listed, such as a loader's skipped(); they are left out of sums and samples.
  // Null: the first one is the evaluation's error.
  std::shared_ptr<data::SkippedSamples> skipped = {};
};

// Adds what `sums_of` returns for the batches of all samples, without gradients. Networks must be in eval mode
// (nn/eval_mode.h): a wrapped one whose buffers an evaluation changes is a ConfigError, Dropout is not seen. A batch's
// tensors are on options.device, images that come as bytes as numbers (data/byte_tables.h). A collective. Throws, on
// all ranks, what `sums_of` throws on one; ConfigError for an empty data set, for a chunk below 1, and if names differ
// between batches; DataError as SkippedSamples::add, and if no sample can be read.
Measured evaluate(World& world, const data::Dataset& data, const SumsOf& sums_of, const EvaluateOptions& options = {});

// The same with the wrapped network in eval mode, after which its layers have their own modes again, and on its device,
// whatever options.device is. All ranks get rank 0's buffers before. Threads stay as they are also if it was wrapped
// with .keep_threads. Throws ConfigError, too, where a rank has other weights than rank 0, though steps were all
// ranks'.
Measured evaluate(parallel::DistributedDataParallel& ddp, const data::Dataset& data, const SumsOf& sums_of,
                  EvaluateOptions options = {});

}  // namespace lockstep::loop
