// Tests that need a GPU.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::testing_support {

// The reason why tests of a GPU are skipped; empty where they must pass. It looks at the machine's device files and at
// this build's plug-in alone, so that a fault of what is tested is no reason. `./run test cuda` sets LOCKSTEP_TEST_GPU,
// and there is none then.
inline std::string why_no_gpu() {
  namespace fs = std::filesystem;
  if (std::getenv("LOCKSTEP_TEST_GPU") != nullptr) return "";
  if (!fs::exists("/dev/nvidia0") && !fs::exists("/dev/dxg")) return "no GPU";
  const fs::path plugin = fs::read_symlink("/proc/self/exe").parent_path() / "liblockstep_cuda.so";
  return fs::exists(plugin) ? "" : "this build has no liblockstep_cuda.so";
}

}  // namespace lockstep::testing_support

#define LOCKSTEP_NEEDS_GPU()                                                             \
  if (const std::string why = ::lockstep::testing_support::why_no_gpu(); !why.empty()) { \
    GTEST_SKIP() << "needs a GPU: " << why;                                              \
  }
