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
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/lease.h"
#include "lockstep/base/log.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/world/once.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

// The number of starts that a file has lines of.
int64_t starts_in(const std::string& path) {
  std::ifstream file(path);
  int64_t starts = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"ranks\"") == std::string::npos) continue;
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const auto attempt = record.is_object() ? record.find("attempt") : record.end();
    if (attempt != record.end() && attempt->is_number_integer()) {
      starts = std::max(starts, attempt->get<int64_t>() + 1);
    }
  }
  return starts;
}

// The same of a folder: a rank may have been killed before it could note a start that others have lines of.
int64_t starts_of(const std::string& folder) {
  int64_t starts = 0;
  for (const fs::path& path : entries_of(folder)) starts = std::max(starts, starts_in(path));
  return starts;
}

// Whether a killed writer has left half a line at the end of a file.
bool ends_in_half(const std::string& path) {
  std::ifstream file(path, std::ios::ate);
  if (!file || file.tellg() <= 0) return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
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

Ledger::Ledger(const std::string& folder, World& world, const data::LaneSampler& sampler, int64_t after, bool begins)
    : path_(cat(folder, "/rank", world.rank(), ".jsonl")), sampler_(sampler) {
  int64_t found = 0;
  if (world.local_rank() == 0) {  // for its node, whose disk may be its own
    std::error_code ignored;
    if (begins) fs::remove_all(folder, ignored);
    found = starts_of(folder);
  }
  // Nodes may have come since, whose disks have seen fewer starts. Nobody writes before all have looked.
  for (const std::string& starts : comm::gather_texts(world.communicator(), cat(found))) {
    attempt_ = std::max<int64_t>(attempt_, std::stoll(starts));
  }
  const data::SamplerOptions& options = sampler.options();
  const nlohmann::ordered_json begun = {{"attempt", attempt_},
                                        {"rank", world.rank()},
                                        {"ranks", world.size()},
                                        {"local_rank", world.local_rank()},
                                        {"local_size", world.place().local_size},
                                        {"after", after},
                                        {"samples", options.dataset_size},
                                        {"lanes", options.lanes},
                                        {"batch_size", options.batch_size},
                                        {"drop_last", options.drop_last}};
  together(world.communicator(), [&] {
    std::error_code error;
    fs::create_directories(folder, error);
    file_ = Descriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file_) throw IoError(path_, ": can't be written: ", errno_text(errno));
    write(cat(ends_in_half(path_) ? "\n" : "", begun.dump(), '\n'));
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
  check_lease(path_);
  if (!write_all(file_.get(), lines)) throw IoError(path_, ": can't be written: ", errno_text(errno));
}

}  // namespace lockstep::train
