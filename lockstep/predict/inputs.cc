#include "lockstep/predict/inputs.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/path_kind.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/image_files.h"

namespace lockstep::predict {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::vector<std::string> input_files(const std::string& in, const std::string& left_out,
                                     const datasets::OnProblem& on_problem) {
  if (!is_folder(in)) return {in};
  std::error_code error;
  // Only a folder within the images' is left out: another one may be above them.
  std::string apart = left_out.empty() ? "" : fs::weakly_canonical(left_out, error).string() + '/';
  if (error || !apart.starts_with(fs::weakly_canonical(in, error).string() + '/') || error) apart.clear();
  std::vector<std::string> files;
  for (const Listed& each : datasets::list_files(in, 8, on_problem)) {
    const fs::path path = fs::path(in) / each.name;
    if (!datasets::is_image(each.name)) continue;
    if (!apart.empty() && fs::weakly_canonical(path, error).string().starts_with(apart)) continue;
    files.push_back(path.string());
  }
  if (files.empty()) throw DataError(shown(in), ": no images (", datasets::kImageEndings, ") are in it");
  return files;
}

std::vector<std::string> output_names(const std::string& in, const std::vector<std::string>& files) {
  const fs::path root = is_folder(in) ? fs::path(in) : fs::path(in).parent_path();
  std::vector<std::string> names;
  std::map<std::string, std::string> file_of;
  for (const std::string& file : files) {
    std::string name = fs::path(file).lexically_relative(root).replace_extension().string();
    std::replace(name.begin(), name.end(), '/', '_');
    const auto [other, is_new] = file_of.emplace(name, file);
    if (!is_new) {
      throw DataError(shown(file), " and ", shown(other->second), ": what is made of them would have one name, ",
                      shown(name), "; rename one");
    }
    names.push_back(name);
  }
  return names;
}

}  // namespace lockstep::predict
