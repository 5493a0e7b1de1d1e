#include "lockstep/config/spellings.h"

#include <algorithm>

namespace lockstep::config {
namespace {

bool is_short(const Spelling& spelling) { return spelling.other.size() == 2; }

// A word with a spelling's name: alone, or with its value.
bool has_name(const std::string& word, const Spelling& spelling) {
  if (!word.starts_with(spelling.other)) return false;
  if (!spelling.takes_value) return word == spelling.other;
  return word.size() == spelling.other.size() || is_short(spelling) || word[spelling.other.size()] == '=';
}

bool is_known(const std::string& name, std::span<const OptionShape> shapes) {
  return std::any_of(shapes.begin(), shapes.end(), [&](const auto& shape) { return shape.name == name; });
}

std::string with_dashes(const std::string& word, std::span<const OptionShape> shapes) {
  if (!word.starts_with("--")) return word;
  const size_t end = std::min(word.find('='), word.size());
  std::string name = word.substr(2, end - 2);
  std::replace(name.begin(), name.end(), '_', '-');
  return is_known(name, shapes) ? "--" + name + word.substr(end) : word;
}

}  // namespace

std::vector<std::string> respell(std::span<const std::string> args, std::span<const Spelling> spellings,
                                 std::span<const OptionShape> shapes) {
  std::vector<std::string> line;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (word == "--") {
      line.insert(line.end(), args.begin() + static_cast<ptrdiff_t>(i), args.end());
      return line;
    }
    const auto found = std::find_if(spellings.begin(), spellings.end(), [&](const auto& each) {
      return is_known(each.option, shapes) && has_name(word, each);
    });
    if (found == spellings.end()) {
      line.push_back(with_dashes(word, shapes));
      continue;
    }
    std::string value = word.substr(found->other.size());
    if (value.starts_with("=")) value.erase(0, 1);
    const bool follows = found->takes_value && word.size() == found->other.size();
    if (follows && i + 1 == args.size()) {
      line.push_back("--" + found->option);  // its value is missing
      continue;
    }
    if (follows) value = args[++i];
    const bool is_number = value.find_first_not_of("0123456789") == std::string::npos;
    line.push_back("--" + found->option + "=" + found->before + value + (is_number ? found->after : ""));
  }
  return line;
}

}  // namespace lockstep::config
