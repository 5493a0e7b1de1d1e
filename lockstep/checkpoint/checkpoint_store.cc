#include "lockstep/checkpoint/checkpoint_store.h"

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"

namespace lockstep::checkpoint {

CheckpointStore::CheckpointStore(std::string folder, Options options)
    : folder_(std::move(folder)), keep_last_(options.keep_last), files_(folder_, options.keep_last) {}

std::string CheckpointStore::save(int64_t step, const Value& value, const std::function<void()>& on_progress) {
  return files_.save(step, [&](const std::string& path) { write_pt(value, path, on_progress); });
}

void CheckpointStore::refuse_later(int64_t step) const {
  for (const Saved& saved : list()) {
    if (saved.step <= step) continue;
    std::error_code error;
    const auto written = std::filesystem::last_write_time(saved.path, error);
    const auto known = damaged_.find(saved.path);
    if (!error && known != damaged_.end() && known->second == written) continue;
    try {
      open_checkpoint(saved.path);
    } catch (const DataError&) {
      damaged_[saved.path] = written;
      continue;
    }
    throw ConfigError("step ", step, ": ", saved.path,
                      " is of a later step, and the next load would take it; save into ",
                      "a folder of its own what goes on from an older file, or remove the later ones, as ",
                      "store.cut_back(", step, ") does, on one rank");
  }
}

std::optional<CheckpointStore::Loaded> CheckpointStore::load_newest(const ReadOptions& options) const {
  const std::vector<Saved> all = list();
  std::vector<Damaged> damaged;
  for (auto saved = all.rbegin(); saved != all.rend(); ++saved) {
    try {
      return Loaded{*saved, open_checkpoint(saved->path, options), damaged};
    } catch (const DataError& error) {
      damaged.push_back({saved->path, error.what()});
    }
  }
  if (damaged.empty()) return std::nullopt;
  throw DataError("none of ", all.size(), " checkpoints in ", folder_,
                  " can be read; the newest: ", damaged.front().why);
}

}  // namespace lockstep::checkpoint
