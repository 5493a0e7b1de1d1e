#include "lockstep/train/inspection/run_check.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/file_content.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/base/shown.h"
#include "lockstep/checkpoint/contents/check_file.h"
#include "lockstep/checkpoint/names/step_files.h"
#include "lockstep/config/toml_file.h"
#include "lockstep/track/event_file.h"
#include "lockstep/track/event_records.h"
#include "lockstep/train/folder/run_files.h"
#include "lockstep/train/inspection/ledger_check.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using State = FileCheck::State;

constexpr std::array<const char*, 5> kStates = {"whole", "damaged", "unreadable", "left over", "set aside"};

bool has_entry(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

// The message of an error about a file, without the name that stands before it.
std::string without_name(const std::string& line, const std::string& file) {
  return line.starts_with(file + ": ") ? line.substr(file.size() + 2) : line;
}

// `check` returns what the file holds, or throws.
template <typename Check>
FileCheck checked(const std::string& file, const Check& check) {
  try {
    return {State::kWhole, file, check()};
  } catch (const IoError& error) {
    return {State::kUnreadable, file, without_name(error.what(), file)};
  } catch (const Error& error) {
    return {State::kDamaged, file, without_name(error.what(), file)};
  }
}

std::string counted(size_t number, const char* what) { return cat(number, ' ', what, number == 1 ? "" : "s"); }

std::string check_checkpoint(const std::string& file) {
  const auto found = checkpoint::check_file(file);
  return cat(counted(found.tensors, "tensor"), ", ", counted(found.values, "value"), ", ", human_bytes(found.bytes));
}

std::string check_link(const std::string& file) {
  std::error_code error;
  const std::string target = fs::read_symlink(file, error).string();
  if (!fs::exists(file, error)) throw DataError("leads to ", shown(target), ", which is not there");
  if (!checkpoint::step_of_name(target)) throw DataError("leads to ", shown(target), ", which is no step's checkpoint");
  return cat("leads to ", target);
}

// A writer that is killed may leave half a last line.
std::string check_metrics(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw IoError("can't be read: ", errno_text(errno));
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const bool is_half = file.eof();
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object()) continue;
    if (is_half) return cat(counted(number - 1, "record"), " and half a line, which a resume drops");
    throw DataError("line ", number, " is no JSON object");
  }
  if (file.bad()) throw IoError("can't be read: ", errno_text(errno));
  return counted(number, "record");
}

std::string check_results(const std::string& path) {
  const auto text = file_content(path);
  if (!text) throw IoError("can't be read: ", errno_text(errno));
  const auto results = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!results.is_object() || !results.contains("steps") || !results["steps"].is_number_integer()) {
    throw DataError("not the results of a run: no JSON object with \"steps\"");
  }
  return counted(results["steps"].get<size_t>(), "step");
}

std::string check_events(const std::string& path) {
  const track::EventRecords records = track::read_event_records(path);
  return counted(records.whole.size(), "record") + (records.has_half ? " and half a one, which a resume drops" : "");
}

std::string check_config(const std::string& path) { return counted(config::read_any_toml(path).size(), "option"); }

// A file by its name; nothing for one that no run writes.
void check_by_name(const std::string& path, std::vector<FileCheck>& checks) {
  const std::string name = fs::path(path).filename().string();
  if (name.ends_with(".tmp")) {
    checks.push_back({State::kLeftOver, path, "a writer that was killed left it, or one is at work"});
  } else if (name.ends_with(".pt.damaged")) {
    checks.push_back({State::kSetAside, path, "was found damaged when the run went on"});
  } else if (fs::is_symlink(path)) {
    if (name.ends_with(".pt")) checks.push_back(checked(path, [&] { return check_link(path); }));
  } else if (track::is_event_file(name)) {
    checks.push_back(checked(path, [&] { return check_events(path); }));
  } else if (name.ends_with(".pt")) {
    checks.push_back(checked(path, [&] { return check_checkpoint(path); }));
  }
}

template <typename Each>
void mark_links_to_damaged(Each begin, Each end) {
  for (Each link = begin; link != end; ++link) {
    if (link->state != State::kWhole || !fs::is_symlink(link->file)) continue;
    std::error_code error;
    const std::string target = fs::read_symlink(link->file, error).filename().string();
    const auto found = std::find_if(
        begin, end, [&](const FileCheck& each) { return fs::path(each.file).filename().string() == target; });
    if (found == end || found->state != State::kDamaged) continue;
    link->state = State::kDamaged;
    link->about += ", which is damaged";
  }
}

void check_folder(const std::string& folder, std::vector<FileCheck>& checks) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const fs::path& path : entries_of(folder, error)) paths.push_back(path.string());
  if (error) checks.push_back({State::kUnreadable, folder, error.message()});
  std::sort(paths.begin(), paths.end());
  const auto first = static_cast<ptrdiff_t>(checks.size());
  for (const std::string& path : paths) check_by_name(path, checks);
  mark_links_to_damaged(checks.begin() + first, checks.end());
}

}  // namespace

std::vector<FileCheck> check_files(const std::string& path) {
  std::vector<FileCheck> checks;
  if (!is_folder(path)) {
    checks.push_back(checked(path, [&] { return check_checkpoint(path); }));
    return checks;
  }
  const RunFiles files{path};
  const auto check = [&](const std::string& file, std::string (*how)(const std::string&)) {
    if (has_entry(file)) checks.push_back(checked(file, [&] { return how(file); }));
  };
  check(files.config(), check_config);
  check(files.metrics(), check_metrics);
  check(files.final_json(), check_results);
  check(files.ledger(), check_ledger);
  check_folder(path, checks);
  if (is_folder(files.checkpoints())) check_folder(files.checkpoints(), checks);
  if (checks.empty())
    throw ConfigError("verify ", path, ": neither a run's folder nor one with checkpoints; name a file");
  return checks;
}

size_t count(const std::vector<FileCheck>& checks, State state) {
  const auto is_so = [state](const FileCheck& check) { return check.state == state; };
  return static_cast<size_t>(std::count_if(checks.begin(), checks.end(), is_so));
}

std::string text_of(const FileCheck& check) {
  const std::string state = kStates[static_cast<size_t>(check.state)];
  return cat(state, std::string(12 - state.size(), ' '), shown(check.file), "  ", shown(check.about));
}

nlohmann::ordered_json json_of(const std::vector<FileCheck>& checks) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& [state, file, about] : checks) {
    std::string word = kStates[static_cast<size_t>(state)];
    std::replace(word.begin(), word.end(), ' ', '_');
    json.push_back({{"file", file}, {"state", word}, {"about", about}});
  }
  return json;
}

}  // namespace lockstep::train
