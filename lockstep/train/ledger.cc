#include "lockstep/train/ledger.h"

#include <fcntl.h>
#include <unistd.h>

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
    if (!record.is_object() || !record.contains("ranks") || !record["attempt"].is_number_integer()) continue;
    found.starts = std::max(found.starts, record["attempt"].get<int64_t>() + 1);
  }
  return found;
}

uint64_t hash_of(const data::LaneSampler& sampler, const data::Position& position, const data::LaneBatch& lane) {
  Xxh3 hash;
  const auto samples = sampler.lane(position.epoch, position.step, lane.lane);
  hash.add(std::span(samples));
  for (const auto& [name, tensor] : lane.tensors) {
    if (!tensor.is_cpu()) continue;
    const at::Tensor dense = tensor.contiguous();
    hash.add(dense.const_data_ptr(), dense.nbytes());
  }
  return hash.value();
}

}  // namespace

Ledger::Ledger(const std::string& folder, World& world, const data::LaneSampler& sampler, int64_t after)
    : path_(cat(folder, "/rank", world.rank(), ".jsonl")), sampler_(sampler) {
  const Found found = look(path_);
  // Rank 0 has been there at every start.
  attempt_ = std::stoll(comm::text_of_rank(world.communicator(), 0, cat(found.starts)));
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
        {"attempt", attempt_},        {"step", step},         {"lane", lane.lane},
        {"first", begin + own.first}, {"count", lane.size()}, {"xxh3", hex(hash_of(sampler_, batch.position, lane))}};
    lines += cat(record.dump(), '\n');
  }
  write(lines);
}

void Ledger::write(const std::string& lines) {
  if (!write_all(file_.get(), lines)) throw IoError(path_, ": can't be written: ", errno_text(errno));
}

}  // namespace lockstep::train
