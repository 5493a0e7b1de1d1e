// The files of a run's folder, which rank 0 alone writes.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lockstep::train {

struct RunFiles {
  std::string folder;

  std::string config() const { return folder + "/config.toml"; }
  std::string metrics() const { return folder + "/metrics.jsonl"; }
  std::string final_json() const { return folder + "/final.json"; }
  std::string checkpoints() const { return folder + "/checkpoints"; }
  std::string interrupted() const { return checkpoints() + "/INTERRUPTED.pt"; }
};

// Writes a small text file atomically. Throws IoError.
void write_text(const std::string& path, const std::string& text);

// The checkpoint that --resume names: the file itself, or the newest one in a run's folder, where an interrupted state
// is newer than all others. find_resume_point() finds it, and throws ConfigError if there is none.
struct ResumePoint {
  std::string folder;               // of the run that goes on
  std::optional<std::string> file;  // nothing: the newest readable one of the folder's store
};
ResumePoint find_resume_point(const std::string& resume);

}  // namespace lockstep::train
