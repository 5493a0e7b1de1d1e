#include "lockstep/train/continuation.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/file_content.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/safetensors_index.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/track/event_file.h"
#include "lockstep/track/event_records.h"
#include "lockstep/track/jsonl.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/folder/text_file.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 10;  // to read a run under way, which removes checkpoints that it no longer keeps

using checkpoint::ReadOptions;

ResumedCheckpoint read_file(const std::string& file, const ReadOptions& options) {
  checkpoint::Value value = checkpoint::open_checkpoint(file, options);
  TrainingState state = read_state(value, file);
  return {file, std::move(value), std::move(state)};
}

// Nothing if the file is no longer there.
std::optional<ResumedCheckpoint> read_if_there(const std::string& file, const ReadOptions& options) {
  try {
    return read_file(file, options);
  } catch (const DataError&) {
    std::error_code error;
    if (fs::exists(file, error)) throw;
    return std::nullopt;
  }
}

// Reads the numbered file to which a link leads, or any other file by its own name.
ResumedCheckpoint read_numbered(const std::string& resume, const ReadOptions& options) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string file = numbered_checkpoint(resume);
    if (file == resume) break;
    if (auto read = read_if_there(file, options)) return *std::move(read);
  }
  return read_file(resume, options);
}

void rename(const std::string& path, const std::string& to) {
  std::error_code error;
  fs::rename(path, to, error);
  if (error) throw IoError(path, ": can't be renamed to ", to, ": ", error.message());
}

std::string numbered(const RunFiles& files, int64_t step) {
  return cat(files.checkpoints(), '/', checkpoint::step_file_name(step));
}

// The interrupted state becomes a numbered checkpoint like the others, so that none is taken for newer than those which
// the run saves from here on.
void number(const RunFiles& files, int64_t step) { rename(files.interrupted(), numbered(files, step)); }

// Removes a file and notes its name, if it is there.
void drop(const std::string& path, std::vector<std::string>& dropped) {
  std::error_code error;
  if (fs::remove(path, error)) dropped.push_back(fs::path(path).filename().string());
  if (error) throw IoError(path, ": can't be removed: ", error.message());
}

// The checkpoint comes after the metrics, for without it the folder can't be resumed, and before the parent's best: at
// any moment the newest is the step from which the run goes on.
Continued copy_history(const RunFiles& files, const ResumedCheckpoint& from) {
  const int64_t step = from.state.step;
  const RunFiles parent{run_of(from.file)};
  Continued done;
  if (!parent.folder.empty()) {
    const track::Cut metrics = track::cut_jsonl(parent.metrics(), step);
    if (metrics.is_there) write_text(files.metrics(), metrics.text);
    done.evaluated = metrics.evaluated;
  }
  checkpoint::CheckpointStore store(files.checkpoints());
  checkpoint::verify_stored(from.value, checkpoint::kEverything);  // into memory, from which it is written
  store.save(step, from.value);
  if (parent.folder.empty()) return done;
  const auto best = checkpoint::CheckpointStore(parent.checkpoints()).best();
  if (!best || *best > step || !is_file(numbered(parent, *best))) return done;
  if (*best < step) store.adopt(*best, numbered(parent, *best));
  store.mark_best(*best);
  return done;
}

// Removes what copy_history() has made. `before` are the checkpoints that were there.
void remove_history(const RunFiles& files, const std::vector<checkpoint::StepFile>& before) {
  std::error_code ignored;
  for (const auto& saved : checkpoint::step_files_in(files.checkpoints())) {
    const bool is_own =
        std::none_of(before.begin(), before.end(), [&](const auto& each) { return each.step == saved.step; });
    if (is_own) fs::remove(saved.path, ignored);
  }
  for (const std::string& link : {files.last(), files.best()}) {
    if (!fs::exists(link, ignored)) fs::remove(link, ignored);
  }
  fs::remove(files.metrics(), ignored);
}

// Of a run's folder; nothing if it has no checkpoint.
std::optional<ResumedCheckpoint> read_newest(const std::string& folder, const ReadOptions& options = {}) {
  const RunFiles files{folder};
  const checkpoint::CheckpointStore store(files.checkpoints());
  std::vector<checkpoint::CheckpointStore::Damaged> damaged;
  std::optional<ResumedCheckpoint> interrupted;
  if (is_file(files.interrupted())) {
    try {
      interrupted = read_file(files.interrupted(), options);
    } catch (const DataError& error) {
      damaged.push_back({files.interrupted(), error.what()});
    }
  }
  const auto saved = store.list();
  if (interrupted && (saved.empty() || saved.back().step <= interrupted->state.step)) return *std::move(interrupted);
  auto newest = store.load_newest(options);
  if (!newest && damaged.empty()) return std::nullopt;
  if (!newest) throw DataError(damaged[0].why, "; ", folder, " has no other checkpoint, start the run anew");
  damaged.insert(damaged.end(), newest->damaged.begin(), newest->damaged.end());
  TrainingState state = read_state(newest->value, newest->saved.path);
  return ResumedCheckpoint{newest->saved.path, std::move(newest->value), std::move(state), std::move(damaged)};
}

NamedCheckpoint named(const std::string& file, const std::vector<checkpoint::CheckpointStore::Damaged>& damaged) {
  NamedCheckpoint found{file};
  for (const auto& each : damaged) found.warnings.push_back(cat(each.why, "; taking ", file));
  return found;
}

}  // namespace

ResumedCheckpoint read_resumed(const std::string& resume, const ReadOptions& options) {
  if (!is_folder(resume)) return read_numbered(resume, options);
  if (auto newest = read_newest(resume, options)) return *std::move(newest);
  throw ConfigError("--resume ", resume, ": the run has no checkpoint; start it anew");
}

void check_skip_bad(const ResumedCheckpoint& resumed, int64_t most) {
  const int64_t count = std::ssize(resumed.state.skipped);
  if (count <= most) return;
  throw ConfigError("--resume ", resumed.file, ": the run has passed over ", count, count == 1 ? " sample" : " samples",
                    " that can't be read, and --skip-bad is ", most, "; give --skip-bad ", count, " or more");
}

void refuse_going_back(const RunFiles& files, const ResumedCheckpoint& from, const std::string& resume) {
  const auto saved = checkpoint::step_files_in(files.checkpoints());
  if (is_folder(resume) || saved.empty() || saved.back().step <= from.state.step) return;
  throw ConfigError("--resume ", resume, ": of step ", from.state.step, ", and the run has a later checkpoint, ",
                    saved.back().path, "; go on from that by --resume ", files.folder,
                    ", fork this one by --out and another folder, or add --overwrite to drop what is later");
}

NamedCheckpoint find_checkpoint(const std::string& name, const std::string& path, const ReadOptions& options) {
  if (!is_folder(path)) return {path};
  const auto newest = read_newest(path, options);
  if (const auto model = newest ? std::nullopt : checkpoint::find_safetensors(path)) return {*model};
  if (!newest) throw ConfigError(name, ' ', path, ": the run has no checkpoint");
  return named(newest->file, newest->damaged);
}

NamedCheckpoint find_any_checkpoint(const std::string& name, const std::string& path,
                                    const checkpoint::ReadOptions& options) {
  if (!is_folder(path)) return {path};
  const std::string own = RunFiles{path}.checkpoints(), folder = is_folder(own) ? own : path;
  const std::string run = run_of(folder + "/last.pt");
  if (!run.empty() && is_file(RunFiles{run}.interrupted())) return find_checkpoint(name, run, options);
  const auto newest = checkpoint::CheckpointStore(folder).load_newest(options);
  if (const auto model = newest ? std::nullopt : checkpoint::find_safetensors(path)) return {*model};
  if (!newest) {
    throw ConfigError(name, ' ', path, ": no checkpoint (step-000100.pt, model.safetensors) is in it; name a file");
  }
  return named(newest->saved.path, newest->damaged);
}

int64_t steps_in(const std::string& final_json) {
  const auto results =
      nlohmann::json::parse(file_content(final_json).value_or(""), nullptr, /*allow_exceptions=*/false);
  return results.is_object() && results.contains("steps") && results["steps"].is_number()
             ? results["steps"].get<int64_t>()
             : 0;
}

std::vector<std::string> set_aside(const ResumedCheckpoint& from) {
  std::vector<std::string> warnings;
  for (const auto& [path, why] : from.damaged) {
    const std::string to = path + ".damaged";
    rename(path, to);
    warnings.push_back(cat(why, "; it is ", to, " now; going on from ", from.file));
  }
  return warnings;
}

Continued cut_back(const RunFiles& files, int64_t step, const std::string& resumed_from) {
  Continued done;
  const checkpoint::CheckpointStore store(files.checkpoints());
  for (const auto& saved : store.list()) {
    if (saved.step > step) done.dropped.push_back(fs::path(saved.path).filename().string());
  }
  if (store.best().value_or(0) > step) done.dropped.emplace_back("best.pt");
  if (!resumed_from.empty() && same_place(resumed_from, files.interrupted())) {
    number(files, step);
  } else {
    drop(files.interrupted(), done.dropped);
  }
  store.cut_back(step);
  const track::Cut cut = track::cut_jsonl(files.metrics(), step);
  if (!cut.whole) write_text(files.metrics(), cut.text);
  std::error_code ignored;
  if (!cut.whole) fs::remove(files.metrics_csv(), ignored);  // which is made anew from the other
  if (step == 0 && track::remove_event_files(files.folder)) done.dropped.emplace_back("events.out.tfevents.*");
  if (step > 0) track::cut_event_files(files.folder, step);
  done.evaluated = cut.evaluated;
  if (cut.dropped_to > 0) done.dropped.push_back(cat("metrics of steps ", step + 1, " to ", cut.dropped_to));
  if (step == 0 && fs::remove_all(files.ledger(), ignored) > 0 && !ignored) done.dropped.emplace_back("ledger");
  if (steps_in(files.final_json()) > step) drop(files.final_json(), done.dropped);
  return done;
}

Continued take_over(const RunFiles& files, const ResumedCheckpoint& from) {
  const auto before = checkpoint::step_files_in(files.checkpoints());
  try {
    return copy_history(files, from);
  } catch (...) {
    remove_history(files, before);
    throw;
  }
}

}  // namespace lockstep::train
