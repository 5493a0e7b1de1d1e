#include "lockstep/train/run_data.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file_content.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/data/byte_tables.h"
#include "lockstep/data/loader.h"
#include "lockstep/train/data_list.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/origin.h"
#include "lockstep/train/plan.h"
#include "lockstep/world/once.h"

namespace lockstep::train {
namespace {

data::OnOneRank on_rank_0(World& world) {
  return [&world](const std::function<std::string()>& compute) {
    std::string text;
    once(world, OnceScope::kWorld, [&] { text = compute(); });
    return comm::text_of_rank(world.communicator(), 0, text);
  };
}

void check_same_on_all_ranks(const std::string& what, const std::string& own, World& world) {
  const auto all = comm::gather_texts(world.communicator(), own);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw DataError("rank ", rank, " has other data than rank 0: ", what, all[rank], ", and not ", all[0],
                    "; give all ranks the same --data");
  }
}

DataRequest request_of(World& world, const std::string& path, uint64_t seed, bool channels_last,
                       std::shared_ptr<data::Findings> findings, SampleForm form) {
  return {.path = path,
          .seed = seed,
          .channels_last = channels_last,
          .as_bytes = form.as_bytes,
          .encoded = form.encoded,
          .passes_over_bad = form.passes_over_bad,
          .threads = usable_cores(),  // where one rank works, the others wait
          .on_one_rank = on_rank_0(world),
          .findings = std::move(findings)};
}

// Before anything is held out: its mistakes would blame --validation. Data that are made on the spot differ by an
// option, which RunRows::check() names.
void check_files(const OpenedData& data, const ResumedCheckpoint& resumed) {
  for (const Part part : kParts) {
    const DataFacts& then = resumed.state.origin.data;
    if (!differs(then, data.facts, part)) continue;
    const DataFiles files = read_data_list(run_of(resumed.file));
    throw_other_data(resumed.file, difference(then, data.facts, part, files, data.files));
  }
}

// Whether the run had better have images as bytes. check_form() refuses numbers where they are wanted.
bool asks_for_bytes(const Recipe& recipe, const TrainOptions& options) {
  if (!recipe.takes_bytes()) return false;
  const auto transform = recipe.batch_transform();
  const bool possible = transform == nullptr || transform->takes_bytes();
  if (options.normalize == NormalizeOn::kAuto) return possible && options.device.on_gpu();
  if (options.normalize == NormalizeOn::kDevice && !possible) {
    throw ConfigError("--normalize device: ", transform->text(),
                      " computes with normalised images, before they reach the device; use --normalize host");
  }
  return options.normalize == NormalizeOn::kDevice;
}

SampleForm form_of(const Recipe& recipe, const TrainOptions& options) {
  const bool passes_over_bad = options.data.skip_bad > 0;
  if (options.decode == DecodeOn::kHost)
    return {.as_bytes = asks_for_bytes(recipe, options), .passes_over_bad = passes_over_bad};
  if (!recipe.takes_encoded()) {
    throw ConfigError("--decode device: the data of ", recipe.name(), " are decoded on the host; use --decode host");
  }
  if (const auto transform = recipe.batch_transform()) {
    throw ConfigError("--decode device: ", transform->text(),
                      " mixes pictures, before the device has decoded them; use --decode host");
  }
  return {.as_bytes = true, .encoded = true, .passes_over_bad = passes_over_bad};
}

// Whether the data came as they were asked for.
void check_form(const data::Dataset& train, const TrainOptions& options) {
  if (options.decode == DecodeOn::kDevice && !data::has_encoded(train.fields())) {
    throw ConfigError("--decode device: these data are no files of pictures (", train.description(),
                      "); use --decode host");
  }
  if (options.normalize != NormalizeOn::kDevice || data::has_tables(train.fields())) return;
  throw ConfigError("--normalize device: these data come as the numbers that the model takes, and would be normalised ",
                    "twice (", train.description(), "); use --normalize host");
}

}  // namespace

int loading_threads(DeviceKind device, int workers) {
  return device == DeviceKind::kCpu ? workers : std::max(1, workers);
}

std::shared_ptr<data::Findings> read_findings(const std::string& run_folder) {
  if (run_folder.empty()) return std::make_shared<data::Findings>();
  return std::make_shared<data::Findings>(file_content(RunFiles{run_folder}.data_scan()).value_or(""));
}

OpenedData open_data(const Recipe& recipe, const std::string& path, uint64_t seed, bool channels_last, World& world,
                     std::shared_ptr<data::Findings> findings, SampleForm form) {
  const DataRequest request = request_of(world, path, seed, channels_last, std::move(findings), form);
  OpenedData data{.splits = recipe.open_data(request), .facts = {}, .files = {}};
  data.facts = facts_of(data.splits);
  data.files = files_of(data.splits);
  for (const Part part : kParts) {
    check_same_on_all_ranks(prefix_of(part), of(data.facts.fingerprints, part), world);
  }
  check_same_on_all_ranks("samples of ", shape_text(data.splits.train->sample_shape()), world);
  return data;
}

RunData open_run_data(const Recipe& recipe, const TrainOptions& options, World& world,
                      const ResumedCheckpoint* resumed) {
  const auto seed = static_cast<uint64_t>(options.seed);
  const bool channels_last = takes_channels_last(options.channels_last, recipe.defaults());
  auto findings = resumed == nullptr ? std::make_shared<data::Findings>() : read_findings(run_of(resumed->file));
  OpenedData opened =
      open_data(recipe, options.data.path, seed, channels_last, world, findings, form_of(recipe, options));
  check_form(*opened.splits.train, options);
  if (resumed != nullptr && !options.data.path.empty()) check_files(opened, *resumed);
  data::HoldOutRequest held = {.percent = options.data.validation, .files = options.data.hold_out};
  if (!held.percent && held.files.empty() && resumed != nullptr) held = resumed->state.origin.held_out();
  data::Completed completed = data::complete(opened.splits, held, seed);
  const int workers = data::usual_workers(*opened.splits.train, usable_cores(), world.place().local_size);
  return {.splits = std::move(completed.splits),
          .held_out = std::move(completed.held_out),
          .held_usual = completed.usual,
          .facts = std::move(opened.facts),
          .files = std::move(opened.files),
          .findings = std::move(findings),
          .workers = loading_threads(options.device.kind, options.data.workers.value_or(workers))};
}

}  // namespace lockstep::train
