#include "lockstep/loop/evaluate.h"

#include <c10/core/GradMode.h>

#include <optional>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/data/byte_tables.h"
#include "lockstep/data/loader.h"
#include "lockstep/loop/chunk_sums.h"
#include "lockstep/loop/weights_check.h"
#include "lockstep/nn/eval_mode.h"
#include "lockstep/parallel/threads.h"
#include "lockstep/parallel/wrapped_networks.h"

namespace lockstep::loop {
namespace {

std::string names_of(const Sums& sums) {
  std::string names;
  for (const auto& [name, sum] : sums) names += cat(names.empty() ? "" : ", ", name);
  return names;
}

// The sums' names on all ranks, each 0 on a rank that had no batch.
Sums agree_on_names(comm::Communicator& comm, const std::optional<Sums>& own) {
  constexpr char kHadBatches = '+';
  std::string first;
  for (const std::string& theirs : comm::gather_texts(comm, own ? kHadBatches + names_of(*own) : "")) {
    if (first.empty()) first = theirs;
    if (theirs.empty() || theirs == first) continue;
    throw ConfigError("an evaluation gave the sums ", first.substr(1), " on one rank and ", theirs.substr(1),
                      " on another");
  }
  if (own) return *own;
  Sums sums;
  const std::string names = first.substr(1);
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(", ", begin), names.size());
    sums.emplace(names.substr(begin, end - begin), 0);
    begin = end + 2;
  }
  return sums;
}

// Those of inference tensors, which have none, are 0.
std::vector<int64_t> versions_of(const std::vector<at::Tensor>& tensors) {
  std::vector<int64_t> versions;
  for (const at::Tensor& each : tensors) versions.push_back(each.is_inference() ? 0 : each._version());
  return versions;
}

// A rank that has put other weights in, as the average that it alone keeps, would measure another network.
void check_same_weights(parallel::DistributedDataParallel& ddp) {
  comm::Communicator& comm = ddp.world().communicator();
  if (comm.size() == 1) return;
  const auto hashes = comm::gather_texts(comm, ddp.has_equal_weights() ? hash_of_weights(ddp.module()) : "");
  for (size_t rank = 1; rank < hashes.size(); ++rank) {
    if (hashes[rank] == hashes[0] || hashes[rank].empty() || hashes[0].empty()) continue;
    throw ConfigError("evaluate: the network's weights on rank ", rank,
                      " differ from rank 0's; they were changed on some ",
                      "ranks only, as by averages that are kept or put in on one; do it on all");
  }
}

}  // namespace

double Measured::sum(const std::string& name) const {
  const auto found = sums.find(name);
  if (found == sums.end()) throw ConfigError("the evaluation has no sum ", name, "; it has ", names_of(sums));
  return found->second;
}

Measured evaluate(World& world, const data::Dataset& data, const SumsOf& sums_of, const EvaluateOptions& options) {
  if (data.size() == 0) throw ConfigError("evaluation: the data set has no samples: ", data.description());
  std::optional<parallel::OneThreadUnlessChosen> same_at_any_number_of_ranks;
  if (!options.keep_threads) {
    if (options.lanes > 0) parallel::propose_threads(options.lanes);
    same_at_any_number_of_ranks.emplace();
  }
  const c10::AutoGradMode no_grad(false);
  const int workers = options.workers.value_or(data::usual_workers(data, usable_cores(), world.place().local_size));
  const data::ByteTables tables(data.fields(), options.device);
  std::optional<Sums> first_sums;
  const auto measure = [&](data::Batch batch) {
    batch.for_each_tensor([&](at::Tensor& tensor) { tensor = tensor.to(options.device); });
    tables.apply(batch);
    const Sums sums = sums_of(batch);
    if (!first_sums) first_sums = sums;
    if (names_of(sums) != names_of(*first_sums)) {
      throw ConfigError("an evaluation gave the sums ", names_of(*first_sums), " for one batch and ", names_of(sums),
                        " for another");
    }
    std::vector<double> values = {static_cast<double>(batch.size())};
    for (const auto& [name, sum] : sums) values.push_back(sum);
    return values;
  };
  std::vector<at::Tensor> buffers;
  if (!options.in_training_mode) buffers = parallel::training_buffers(world);
  const std::vector<int64_t> before = versions_of(buffers);
  const auto total = batch_sums(world.communicator(), data, options.chunk, workers, measure, options.skipped.get());
  if (!comm::holds_on_all(world.communicator(), versions_of(buffers) == before)) {
    throw ConfigError(
        "an evaluation has changed the buffers of a network in training mode, as BatchNorm's, on each rank by its own "
        "batches; call the network's eval() before, or evaluate(ddp, …), which does (EvaluateOptions::in_training_mode "
        "allows it)");
  }
  Measured measured{.sums = agree_on_names(world.communicator(), first_sums),
                    .samples = static_cast<int64_t>(total.front())};
  auto value = total.begin() + 1;
  for (auto& [name, sum] : measured.sums) sum = *value++;
  return measured;
}

Measured evaluate(parallel::DistributedDataParallel& ddp, const data::Dataset& data, const SumsOf& sums_of,
                  EvaluateOptions options) {
  ddp.sync_buffers();  // a forward outside of run() may have changed them
  check_same_weights(ddp);
  const nn::EvalMode eval({&ddp.module()});
  const auto parameters = ddp.module().parameters();
  options.device = parameters.empty() ? c10::Device(c10::kCPU) : parameters.front().device();
  options.keep_threads |= ddp.keeps_threads();
  return evaluate(ddp.world(), data, sums_of, options);
}

}  // namespace lockstep::loop
