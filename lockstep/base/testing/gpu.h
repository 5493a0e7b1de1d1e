// Tests that need a GPU.
#pragma once

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep::testing_support {

// Whether the machine has a GPU's device file: /dev/nvidia0, or another number in a container that was given one of
// several GPUs.
inline bool has_gpu_file() {
  constexpr std::string_view kPrefix = "nvidia";
  std::error_code failed;
  for (const auto& file : std::filesystem::directory_iterator("/dev", failed)) {
    const std::string name = file.path().filename();
    if (name == "dxg") return true;
    const bool numbered =
        name.size() > kPrefix.size() && std::isdigit(static_cast<unsigned char>(name[kPrefix.size()]));
    if (name.starts_with(kPrefix) && numbered) return true;
  }
  return false;
}

// The reason why tests of a GPU are skipped; empty where they must pass. It looks at the machine's device files and at
// this build's plug-in alone, so that a fault of what is tested is no reason. `./run test cuda` sets LOCKSTEP_TEST_GPU,
// and there is none then.
inline std::string why_no_gpu() {
  namespace fs = std::filesystem;
  if (std::getenv("LOCKSTEP_TEST_GPU") != nullptr) return "";
  if (!has_gpu_file()) return "no GPU";
  const fs::path plugin = fs::read_symlink("/proc/self/exe").parent_path() / "liblockstep_cuda.so";
  return fs::exists(plugin) ? "" : "this build has no liblockstep_cuda.so";
}

}  // namespace lockstep::testing_support

#define LOCKSTEP_NEEDS_GPU()                                                             \
  if (const std::string why = ::lockstep::testing_support::why_no_gpu(); !why.empty()) { \
    GTEST_SKIP() << "needs a GPU: " << why;                                              \
  }
