// For tests: a folder that goes with its owner.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::testing_support {

class TempDir {
 public:
  TempDir() : path_(::testing::TempDir() + "lockstep-test-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw IoError(path_, ": can't be made: ", errno_text(errno));
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace lockstep::testing_support
