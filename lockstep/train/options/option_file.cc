#include "lockstep/train/options/option_file.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/config/toml_file.h"

namespace lockstep::train {
namespace {

constexpr const char* kParent = "parent";
constexpr const char* kAlgorithm = "algorithm";  // in the files of runs before the ring became the bench's

}  // namespace

OptionFile read_option_file(const std::string& path, std::span<const config::OptionShape> shapes) {
  if (path.empty()) return {};
  std::vector<config::OptionShape> keys(shapes.begin(), shapes.end());
  keys.push_back({.name = kParent, .value = "FILE", .help = {}});
  keys.push_back({.name = kAlgorithm, .value = "fold", .help = {}});
  OptionFile file{.path = path, .recipe = {}, .parent = {}, .options = config::read_toml(path, keys)};
  file.recipe = take(file.options, "recipe").value_or("");
  file.parent = take(file.options, kParent).value_or("");
  if (const auto algorithm = take(file.options, kAlgorithm); algorithm && *algorithm != "fold") {
    throw ConfigError(path, ": algorithm ", *algorithm, ": a training folds; the ring is `bench allreduce`'s");
  }
  return file;
}

std::string parent_line(const std::string& parent) {
  if (parent.empty()) return "";
  config::OptionSet rows;
  std::string held;
  rows.text(kParent, "FILE", "", &held, config::Effect::kNone);
  held = parent;
  return config::to_toml(rows);
}

std::optional<std::string> value_of(std::span<const config::GivenOption> given, std::string_view name) {
  const auto found = std::find_if(given.begin(), given.end(), [name](const auto& each) { return each.name == name; });
  if (found == given.end()) return std::nullopt;
  return found->value;
}

std::optional<std::string> take(std::vector<config::GivenOption>& given, std::string_view name) {
  auto value = value_of(given, name);
  std::erase_if(given, [name](const auto& each) { return each.name == name; });
  return value;
}

}  // namespace lockstep::train
