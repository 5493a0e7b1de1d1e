// Files for tests: contents as strings, the fixtures.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::checkpoint::testing_support {

using lockstep::testing_support::TempDir;

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError(path, ": can't be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

// A new file each time: overwriting one makes some file systems write it to the disk at once.
inline void write_file(const std::string& path, const std::string& content) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << content;
}

// The line of the error of type E that `action` throws; "no error" if it throws none.
template <typename E, typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

inline std::string fixtures() { return LOCKSTEP_SOURCE_DIR "/tests/fixtures"; }
inline std::string testdata() { return LOCKSTEP_SOURCE_DIR "/lockstep/checkpoint/formats/testdata"; }

}  // namespace lockstep::checkpoint::testing_support
