#include "lockstep/bundle/environment.h"

#include <cstdlib>
#include <filesystem>

#include "lockstep/base/env.h"
#include "lockstep/base/text.h"
#include "lockstep/bundle/find_libtorch.h"
#include "lockstep/bundle/runtime.h"

namespace lockstep::bundle {

std::optional<std::string> own_bundle() {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  const auto root = self.parent_path().parent_path();
  if (failed || !std::filesystem::exists(root / "libexec/lockstep-worker", failed)) return std::nullopt;
  return root.string();
}

void prepare_environment(const std::string& root) {
  const FoundLibtorch found = find_libtorch(root);
  std::string path = found.folder + "/lib";
  if (const std::string runtime = runtime_folder(root); !runtime.empty()) path = cat(runtime, ':', path);
  if (const auto old = env("LD_LIBRARY_PATH")) path += cat(':', *old);
  setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  setenv("LOCKSTEP_LIBTORCH", cat(found.folder, " (", found.by, ')').c_str(), 1);
}

}  // namespace lockstep::bundle
