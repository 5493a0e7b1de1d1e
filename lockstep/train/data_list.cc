#include "lockstep/train/data_list.h"

#include <charconv>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/file_content.h"
#include "lockstep/base/shown.h"
#include "lockstep/train/folder/run_files.h"

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

// The line that begins a part but the training one, which begins the file.
std::string heading_of(Part part) { return part == Part::kTest ? "part test" : "part validation"; }

std::optional<Listed> file_in(std::string_view line) {
  Listed file;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), file.bytes);
  if (error != std::errc() || end == line.data() + line.size() || *end != ' ') return std::nullopt;
  file.name = unescaped(line.substr(static_cast<size_t>(end + 1 - line.data())));
  return file;
}

}  // namespace

std::string to_text(const DataFiles& files) {
  std::string text;
  bool any = false;
  for (const Part part : kParts) {
    const auto& listed = of(files, part);
    if (!listed) continue;
    if (part != Part::kTrain) text += heading_of(part) + '\n';
    for (const Listed& file : *listed) text += cat(file.bytes, ' ', escaped(file.name), '\n');
    any = any || !listed->empty();
  }
  return any ? text : "";
}

DataFiles files_in(const std::string& text) {
  DataFiles files;
  Part now = Part::kTrain;
  of(files, now).emplace();
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    for (const Part part : {Part::kValidation, Part::kTest}) {
      if (line == heading_of(part)) of(files, now = part).emplace();
    }
    if (auto file = file_in(line)) of(files, now)->push_back(*std::move(file));
  }
  return files;
}

DataFiles read_data_list(const std::string& run_folder) {
  const auto text = file_content(RunFiles{run_folder}.data_list());
  return text ? files_in(*text) : DataFiles{};
}

std::string changed_file(const std::vector<Listed>& then, const std::vector<Listed>& now) {
  auto old = then.begin();
  for (const Listed& file : now) {
    if (old == then.end() || file.name < old->name) return cat(shown(file.name), " was added");
    if (old->name < file.name) return cat(shown(old->name), " is gone");
    if (old->bytes != file.bytes) return cat(shown(file.name), " has ", file.bytes, " bytes, and had ", old->bytes);
    ++old;
  }
  return old == then.end() ? "" : cat(shown(old->name), " is gone");
}

}  // namespace lockstep::train
