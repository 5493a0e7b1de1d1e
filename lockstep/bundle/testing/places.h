// For tests: an empty bundle, folders that look like libtorch's, programs called python3; and an environment without
// any other, until the test ends.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "lockstep/base/env.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::bundle {

class Places : public testing::Test {
 protected:
  Places() : root_(dir_ / "bundle") {
    std::filesystem::create_directories(root_);
    set("PATH", dir_ / "bin");
    for (const char* name : {"LOCKSTEP_TORCH_DIR", "LOCKSTEP_LIBTORCH", "LD_LIBRARY_PATH"}) set(name, "");
  }
  ~Places() override {
    for (const auto& [name, value] : before_) value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
  }

  void set(const char* name, const std::string& value) {
    before_.try_emplace(name, env(name));
    setenv(name, value.c_str(), 1);
  }

  static void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  static void make_libtorch(const std::string& folder, const std::string& version) {
    write(folder + "/lib/libtorch_cpu.so", "");
    write(folder + "/version.py", "__version__ = '" + version + "'\n");
  }
  static void make_python(const std::string& folder, const std::string& script) {
    write(folder + "/python3", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder + "/python3", std::filesystem::perms::owner_all);
  }

  const testing_support::TempDir dir_;
  const std::string root_;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace lockstep::bundle
