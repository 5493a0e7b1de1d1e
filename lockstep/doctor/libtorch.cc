#include "lockstep/doctor/libtorch.h"

#include <filesystem>
#include <fstream>

namespace lockstep::doctor {

Libtorch read_libtorch(const std::string& folder) {
  Libtorch out;
  // "__version__ = '2.11.0+cu130'" and "cuda: Optional[str] = '13.0'"
  std::ifstream package(folder + "/version.py");
  for (std::string line; std::getline(package, line);) {
    if (line.rfind("__version__", 0) == 0) out.version = find_version(line);
    if (line.rfind("cuda", 0) == 0) out.cuda = find_version(line);
  }
  if (out.version) return out;
  std::ifstream archive(folder + "/build-version");  // "2.11.0+cpu"
  if (std::string line; std::getline(archive, line)) out.version = find_version(line);
  return out;
}

std::optional<Version> libtorch_built_against() { return find_version(LOCKSTEP_TORCH_VERSION); }

std::string libtorch_of_list(const std::string& list) {
  constexpr std::string_view kArrow = "libtorch_cpu.so => ";
  const size_t found = list.find(kArrow);
  if (found == std::string::npos) return "";
  const size_t from = found + kArrow.size(), end = list.find(" (0x", from);
  if (end == std::string::npos) return "";  // "not found"
  return std::filesystem::path(list.substr(from, end - from)).lexically_normal().parent_path().parent_path();
}

}  // namespace lockstep::doctor
