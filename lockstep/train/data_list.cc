#include "lockstep/train/data_list.h"

#include <charconv>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

// A name on one line: its backslashes and ends of lines are written as \\\\ and \\n.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    if (letter == '\n') {
      text += "\\n";
    } else {
      if (letter == '\\') text += letter;
      text += letter;
    }
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      name += text[++i] == 'n' ? '\n' : text[i];
    } else {
      name += text[i];
    }
  }
  return name;
}

}  // namespace

std::string to_text(const std::vector<Listed>& files) {
  std::string text;
  for (const Listed& file : files) text += cat(file.bytes, ' ', escaped(file.name), '\n');
  return text;
}

std::vector<Listed> files_in(const std::string& text) {
  std::vector<Listed> files;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    Listed file;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), file.bytes);
    if (error != std::errc() || end == line.data() + line.size() || *end != ' ') continue;
    file.name = unescaped(line.substr(static_cast<size_t>(end + 1 - line.data())));
    files.push_back(std::move(file));
  }
  return files;
}

std::string difference(const std::vector<Listed>& then, const std::vector<Listed>& now) {
  auto old = then.begin();
  for (const Listed& file : now) {
    if (old == then.end() || file.name < old->name) return cat(file.name, " was added");
    if (old->name < file.name) return cat(old->name, " is gone");
    if (old->bytes != file.bytes) return cat(file.name, " has ", file.bytes, " bytes, and had ", old->bytes);
    ++old;
  }
  return old == then.end() ? "" : cat(old->name, " is gone");
}

}  // namespace lockstep::train
