#include "lockstep/train/run_data.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/data/loader.h"
#include "lockstep/train/data_list.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/plan.h"
#include "lockstep/world/once.h"

namespace lockstep::train {
namespace {

data::OnOneRank on_rank_0(World& world) {
  return [&world](const std::function<std::string()>& compute) {
    std::string text;
    once(world, OnceScope::kWorld, [&] { text = compute(); });
    return comm::text_of_rank_0(world.communicator(), text);
  };
}

void check_same_on_all_ranks(const std::string& fingerprint, World& world) {
  const auto all = comm::gather_texts(world.communicator(), fingerprint);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw DataError("rank ", rank, " has other data than rank 0: ", all[rank], ", and not ", all[0],
                    "; give all ranks the same --data");
  }
}

}  // namespace

DataRequest request_of(World& world, const std::string& path, uint64_t seed, bool channels_last) {
  return {.path = path,
          .seed = seed,
          .channels_last = channels_last,
          .threads = std::max(1, usable_cores() / std::max(1, world.place().local_size)),
          .on_one_rank = on_rank_0(world)};
}

RunData open_run_data(const Recipe& recipe, const TrainOptions& options, int lanes, World& world) {
  const auto seed = static_cast<uint64_t>(options.seed);
  const TrainOptions filled = fill_defaults(options, recipe.defaults(options.preset), lanes);
  const bool channels_last = filled.channels_last == ChannelsLast::kOn;
  const data::Splits opened = recipe.open_data(request_of(world, options.data.path, seed, channels_last));
  RunData run;
  run.fingerprint = opened.train->fingerprint();
  check_same_on_all_ranks(run.fingerprint, world);
  run.workers =
      options.data.workers.value_or(data::usual_workers(*opened.train, usable_cores(), world.place().local_size));
  data::Completed completed = data::complete(opened, options.data.validation, seed);
  run.splits = std::move(completed.splits);
  run.held_out = completed.held_out;
  return run;
}

std::string changed_file(const std::string& run_folder, const data::Dataset& data) {
  std::ifstream file(RunFiles{run_folder}.data_list(), std::ios::binary);
  if (!file) return "";
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return difference(files_in(text), data.listing());
}

}  // namespace lockstep::train
