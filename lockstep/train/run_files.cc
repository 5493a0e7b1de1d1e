#include "lockstep/train/run_files.h"

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/atomic_file.h"

namespace lockstep::train {

namespace fs = std::filesystem;

void write_text(const std::string& path, const std::string& text) {
  checkpoint::write_atomically(path, [&](checkpoint::ByteSink& sink) { sink.write(text); });
}

ResumePoint find_resume_point(const std::string& resume) {
  std::error_code error;
  if (fs::is_regular_file(resume, error)) {
    const fs::path parent = fs::absolute(resume).parent_path();
    return {.folder = (parent.filename() == "checkpoints" ? parent.parent_path() : parent).string(), .file = resume};
  }
  const RunFiles files{resume};
  if (!fs::is_directory(files.checkpoints(), error)) {
    throw ConfigError("--resume ", resume, ": neither a checkpoint nor a run's folder with checkpoints in it");
  }
  // The interrupted state is newer than all others, for a run that goes on removes it.
  if (fs::is_regular_file(files.interrupted(), error)) return {.folder = resume, .file = files.interrupted()};
  return {.folder = resume, .file = std::nullopt};
}

}  // namespace lockstep::train
