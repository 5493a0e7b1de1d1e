// Whether the files of runs and checkpoints are whole.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::train {

// A file, and what was found.
struct FileCheck {
  enum class State {
    kWhole,
    kDamaged,
    kUnreadable,  // the machine does not let it be read
    kLeftOver,    // of a writer that was killed; the next save removes it
    kSetAside     // known to be damaged, and kept under another name
  };
  State state = State::kWhole;
  std::string file;
  std::string about;  // for people: what it holds, or what is wrong, without the file's name
};

// Checks a file, or of a run's folder (or one with checkpoints alone): every checkpoint from its first byte to its
// last, that last.pt and best.pt lead to one, metrics.jsonl, final.json, config.toml and the ledger; left-over files
// are named. Throws ConfigError for a folder that holds neither a checkpoint nor another file of a run.
std::vector<FileCheck> check_files(const std::string& path);

// The number that are damaged, and that are unreadable.
size_t count(const std::vector<FileCheck>& checks, FileCheck::State state);

// "whole     runs/a/checkpoints/step-000100.pt  26 tensors, 17 values, 240 KiB".
std::string text_of(const FileCheck& check);
// [{"file", "state": "whole"|"damaged"|"unreadable"|"left_over"|"set_aside", "about"}, …].
nlohmann::ordered_json json_of(const std::vector<FileCheck>& checks);

}  // namespace lockstep::train
