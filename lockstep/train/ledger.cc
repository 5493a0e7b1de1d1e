#include "lockstep/train/ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/world/once.h"

namespace lockstep::train {
namespace {

// The number of starts that a file has lines of, and whether a killed writer has left half a line at its end.
struct Found {
  int64_t starts = 0;
  bool half = false;
};

Found look(const std::string& path) {
  std::ifstream file(path);
  Found found;
  for (std::string line; std::getline(file, line);) {
    found.half = file.eof();
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || !record.contains("ranks")) continue;
    found.starts = std::max(found.starts, record.value("attempt", int64_t{-1}) + 1);
  }
  return found;
}

uint64_t hash_of(const data::LaneSampler& sampler, const data::Position& position, int lane) {
  Xxh3 hash;
  for (const data::Pick& pick : sampler.picks(position.epoch, position.step, lane)) {
    const std::array<uint64_t, 2> numbers = {static_cast<uint64_t>(pick.index), pick.number};
    hash.add(std::span<const uint64_t>(numbers));
  }
  return hash.value();
}

}  // namespace

Ledger::Ledger(const std::string& folder, World& world, const data::LaneSampler& sampler, int64_t after)
    : path_(cat(folder, "/rank", world.rank(), ".jsonl")), sampler_(sampler) {
  // A run that begins has no earlier lines: these are another run's, of a node where nobody else has removed them.
  std::error_code ignored;
  if (after == 0) std::filesystem::remove(path_, ignored);
  const Found found = look(path_);
  // Nodes may have come since, whose disks have seen fewer starts.
  for (const std::string& starts : comm::gather_texts(world.communicator(), cat(found.starts))) {
    attempt_ = std::max<int64_t>(attempt_, std::stoll(starts));
  }
  const data::SamplerOptions& options = sampler.options();
  const nlohmann::ordered_json begun = {{"attempt", attempt_},
                                        {"rank", world.rank()},
                                        {"ranks", world.size()},
                                        {"after", after},
                                        {"samples", options.dataset_size},
                                        {"lanes", options.lanes},
                                        {"batch_size", options.batch_size},
                                        {"drop_last", options.drop_last}};
  together(world.communicator(), [&] {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    file_ = Descriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file_) throw IoError(path_, ": can't be written: ", errno_text(errno));
    write(cat(found.half ? "\n" : "", begun.dump(), '\n'));
  });
}

void Ledger::note(int64_t step, const data::StepBatch& batch) {
  std::string lines;
  const data::SamplerOptions& options = sampler_.options();
  const int64_t begin = batch.position.step * options.lanes * options.batch_size;
  for (const data::LaneBatch& lane : batch.lanes) {
    const data::Range own = data::lane_range(batch.global_samples, options.lanes, lane.lane);
    const nlohmann::ordered_json record = {
        {"attempt", attempt_},  {"step", step},
        {"lane", lane.lane},    {"first", begin + own.first},
        {"count", lane.size()}, {"xxh3", hex(hash_of(sampler_, batch.position, lane.lane))}};
    lines += cat(record.dump(), '\n');
  }
  write(lines);
}

void Ledger::write(const std::string& lines) {
  if (!write_all(file_.get(), lines)) throw IoError(path_, ": can't be written: ", errno_text(errno));
}

}  // namespace lockstep::train
