#include "lockstep/bundle/find_libtorch.h"

#include <filesystem>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/bundle/python.h"
#include "lockstep/doctor/libtorch.h"

namespace lockstep::bundle {
namespace {

namespace fs = std::filesystem;

std::string wanted_version() {
  const auto version = doctor::libtorch_built_against();
  if (!version) throw BugError("bundle: built without libtorch's version");
  return doctor::Version{.major = version->major, .minor = version->minor}.text();
}

bool has_library(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(folder + "/lib/libtorch_cpu.so", ignored);
}

FoundLibtorch checked(const std::string& named, const std::string& by) {
  std::error_code ignored;
  const std::string folder = fs::absolute(named, ignored).lexically_normal();
  if (!has_library(folder)) {
    throw ConfigError(by, ": ", folder,
                      " has no lib/libtorch_cpu.so; set LOCKSTEP_TORCH_DIR to the folder torch of PyTorch ",
                      wanted_version(), ", or to libtorch's");
  }
  const auto version = doctor::read_libtorch(folder).version, built = doctor::libtorch_built_against();
  if (!version || version->major != built->major || version->minor != built->minor) {
    throw ConfigError("libtorch ", version ? version->text() : "of an unknown version", " in ", folder, " (", by,
                      "): this Lockstep goes with ", wanted_version(),
                      "; set LOCKSTEP_TORCH_DIR to the folder torch of PyTorch ", wanted_version());
  }
  return {.folder = folder, .by = by};
}

}  // namespace

FoundLibtorch find_libtorch(const std::string& root) {
  if (const auto named = env("LOCKSTEP_TORCH_DIR")) return checked(*named, "LOCKSTEP_TORCH_DIR");
  for (const auto& python : pythons_of_path()) {
    if (const std::string folder = torch_of(python); !folder.empty()) return checked(folder, python);
  }
  for (const std::string& folder : {root + "/libtorch", root + "/../libtorch"}) {
    if (has_library(folder)) return checked(folder, "beside the bundle");
  }
  throw ConfigError("no libtorch ", wanted_version(),
                    " found: put a python3 that has torch on PATH, set LOCKSTEP_TORCH_DIR to its folder torch, or "
                    "unpack libtorch into ",
                    root, "/libtorch");
}

}  // namespace lockstep::bundle
